# SPDX-License-Identifier: Apache-2.0
#
# elixir.exs - the guest for Elixir: started ahead, waits for its code on stdin (PROTOCOL.md).
#
# The code sees `input` and is evaluated as main.exs. What its last expression gives is the answer,
# unless it printed something: then that is, as with every other program.

defmodule Retort.Json do
  @moduledoc false
  # As small as it can be: Elixir 1.14 has no JSON of its own.

  def encode(nil), do: "null"
  def encode(true), do: "true"
  def encode(false), do: "false"
  def encode(n) when is_integer(n), do: Integer.to_string(n)
  def encode(n) when is_float(n), do: Float.to_string(n)
  def encode(a) when is_atom(a), do: encode(Atom.to_string(a))
  def encode(s) when is_binary(s), do: [?", escape(s), ?"]
  def encode(%_{} = s), do: s |> to_text() |> encode()
  def encode(t) when is_tuple(t), do: t |> Tuple.to_list() |> encode()

  def encode(map) when is_map(map),
    do: [?{, map |> Enum.map(fn {k, v} -> [encode(to_text(k)), ?:, encode(v)] end) |> Enum.intersperse(?,), ?}]

  def encode([{key, _} | _] = list) when is_atom(key) do
    if Keyword.keyword?(list), do: list |> Map.new() |> encode(), else: array(list)
  end

  def encode(list) when is_list(list), do: array(list)
  def encode(other), do: other |> inspect() |> encode()

  defp array(list), do: [?[, list |> Enum.map(&encode/1) |> Enum.intersperse(?,), ?]]

  defp to_text(k) when is_binary(k), do: k
  defp to_text(k) when is_atom(k), do: Atom.to_string(k)

  defp to_text(k) do
    if String.Chars.impl_for(k), do: to_string(k), else: inspect(k)
  end

  defp escape(s) do
    text = if String.valid?(s), do: s, else: inspect(s)

    for <<c::utf8 <- text>>, into: "" do
      case c do
        ?" -> "\\\""
        ?\\ -> "\\\\"
        c when c < 32 -> "\\u" <> String.pad_leading(Integer.to_string(c, 16), 4, "0")
        c -> <<c::utf8>>
      end
    end
  end

  def decode(text) do
    {value, _} = value(skip(text))
    value
  end

  defp skip(<<c, rest::binary>>) when c in ' \t\r\n', do: skip(rest)
  defp skip(rest), do: rest

  defp value("null" <> rest), do: {nil, rest}
  defp value("true" <> rest), do: {true, rest}
  defp value("false" <> rest), do: {false, rest}
  defp value("\"" <> rest), do: string(rest, [])
  defp value("[" <> rest), do: items(skip(rest), [])
  defp value("{" <> rest), do: members(skip(rest), %{})
  defp value(rest), do: number(rest)

  defp items("]" <> rest, done), do: {Enum.reverse(done), rest}

  defp items(text, done) do
    {item, rest} = value(text)

    case skip(rest) do
      "," <> rest -> items(skip(rest), [item | done])
      "]" <> rest -> {Enum.reverse([item | done]), rest}
    end
  end

  defp members("}" <> rest, done), do: {done, rest}

  defp members("\"" <> text, done) do
    {key, rest} = string(text, [])
    ":" <> rest = skip(rest)
    {item, rest} = value(skip(rest))
    done = Map.put(done, key, item)

    case skip(rest) do
      "," <> rest -> members(skip(rest), done)
      "}" <> rest -> {done, rest}
    end
  end

  defp string("\"" <> rest, done), do: {done |> Enum.reverse() |> IO.iodata_to_binary(), rest}

  defp string("\\u" <> <<hex::binary-size(4), rest::binary>>, done) do
    case {String.to_integer(hex, 16), rest} do
      {high, "\\u" <> <<low::binary-size(4), rest::binary>>} when high in 0xD800..0xDBFF ->
        point = 0x10000 + (high - 0xD800) * 0x400 + (String.to_integer(low, 16) - 0xDC00)
        string(rest, [<<point::utf8>> | done])

      {lone, rest} when lone in 0xD800..0xDFFF ->
        string(rest, ["\uFFFD" | done])

      {point, rest} ->
        string(rest, [<<point::utf8>> | done])
    end
  end

  defp string(<<"\\", c, rest::binary>>, done) do
    plain = %{?n => "\n", ?t => "\t", ?r => "\r", ?b => "\b", ?f => "\f"}
    string(rest, [Map.get(plain, c, <<c>>) | done])
  end

  defp string(text, done) do
    {at, _} = :binary.match(text, ["\"", "\\"])
    <<part::binary-size(at), rest::binary>> = text
    string(rest, [part | done])
  end

  defp number(text) do
    [digits] = Regex.run(~r/^-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/, text)
    <<_::binary-size(byte_size(digits)), rest::binary>> = text

    cond do
      digits =~ ~r/^-?[0-9]+$/ -> {String.to_integer(digits), rest}
      digits =~ "." -> {String.to_float(digits), rest}
      true -> {digits |> String.replace(~r/[eE]/, ".0e", global: false) |> String.to_float(), rest}
    end
  end
end

defmodule Retort.Guest do
  @moduledoc false

  def main do
    :io.setopts(:standard_io, encoding: :latin1, binary: true)

    # Each of them once, so that nothing is loaded while somebody waits.
    warm_up()

    with line when is_binary(line) <- IO.binread(:stdio, :line),
         [code_size, env_size] <- line |> String.trim() |> String.split(" ") |> Enum.map(&String.to_integer/1) do
      code = read(code_size)
      env = read(env_size)
      :io.setopts(:standard_io, encoding: :unicode)
      set_environment(env)
      run(code)
    else
      _ -> :ok
    end
  end

  defp read(0), do: ""
  defp read(size), do: IO.binread(:stdio, size)

  defp warm_up do
    compile("_ = input; x = Enum.map([1], & &1 + 1); _ = inspect(x); nil")
    Retort.Json.encode(Retort.Json.decode(~s({"a": [1, "b", null]})))
  end

  defp set_environment(env) do
    for {name, _} <- System.get_env(), do: System.delete_env(name)

    for entry <- String.split(env, <<0>>, trim: true) do
      [name, value] = String.split(entry, "=", parts: 2)
      System.put_env(name, value)
    end
  end

  @doc "What the code sees as `input`."
  def input do
    case System.get_env("INPUT") do
      nil -> nil
      text -> Retort.Json.decode(text)
    end
  rescue
    _ -> System.get_env("INPUT")
  end

  @doc "What its last expression gave. Nothing to say: what was printed speaks."
  def answer(value) when value in [nil, :ok], do: :ok
  def answer(value), do: File.write!(System.get_env("RESULT_FILE"), Retort.Json.encode(value))

  # Compiled, not evaluated: quicker, and errors name their lines.
  defp compile(code) do
    ast = Code.string_to_quoted!(code, file: "main.exs")
    me = __MODULE__
    input = {:input, [generated: true], nil}
    given = {:=, [generated: true], [input, {{:., [], [me, :input]}, [], []}]}
    Code.compile_quoted({:__block__, [], [given, {{:., [], [me, :answer]}, [], [ast]}]}, "main.exs")
  end

  defp run(code) do
    compile(code)
    System.halt(0)
  catch
    kind, reason ->
      IO.puts(:stderr, Exception.format(kind, reason, prune(__STACKTRACE__)))
      System.halt(1)
  end

  # Our own frames tell nobody anything.
  defp prune(stack) do
    Enum.filter(stack, fn {_, _, _, where} -> to_string(where[:file] || "") == "main.exs" end)
  end
end

Retort.Guest.main()

# SPDX-License-Identifier: Apache-2.0
"""The same few programs in each language: what it answers, how it fails, how it tries to break out.

`escape` prints a JSON object {attempt: "refused" or "succeeded"}; the others misbehave without end.
"""

PERL_ESCAPE = r'''
use Socket; my %r; sub t { $r{$_[0]} = $_[1] ? "succeeded" : "refused" }
t("read shadow", open(my $a, "<", "/etc/shadow")); t("list root", opendir(my $b, "/root"));
t("write usr", open(my $c, ">", "/usr/x")); t("write etc", open(my $d, ">", "/etc/x"));
t("write code of guests", open(my $e, ">", "/retort/x")); t("list home", -d "/home");
socket(my $s, PF_INET, SOCK_STREAM, 0); t("connect", connect($s, sockaddr_in(80, inet_aton("127.0.0.1"))));
my ($x, $w, $m) = ("x", "/work", "tmpfs"); t("mount", syscall(165, $x, $w, $m, 0, 0) == 0); t("kill first", kill(9, 1));
print "{", join(",", map { "\"$_\":\"$r{$_}\"" } keys %r), "}";
'''

C_ESCAPE = r'''
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>
static const char *comma = "{";
static void t(const char *name, int ok) { printf("%s\"%s\":\"%s\"", comma, name, ok ? "succeeded" : "refused"); comma = ","; }
int main(void) {
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(80), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    for (int fd = 3; fd < 32; fd++)
        if (fd != 6 && fd != 9 && write(fd, "x", 1) == 1) t("a descriptor of the guest", 1);
    t("read shadow", open("/etc/shadow", O_RDONLY) >= 0); t("list root", open("/root", O_RDONLY) >= 0);
    t("write usr", open("/usr/x", O_CREAT | O_WRONLY, 0600) >= 0); t("write etc", open("/etc/x", O_CREAT | O_WRONLY, 0600) >= 0);
    t("connect", connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&to, sizeof to) == 0);
    t("mount", mount("x", "/work", "tmpfs", 0, "") == 0); t("ptrace", ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
    t("setuid", setuid(0) == 0); t("kill first", kill(1, 9) == 0);
    t("chroot", chroot("/work") == 0);
    puts("}");
}
'''

AWK_ESCAPE = r'''
function t(name, bad) { printf "%s\"%s\":\"%s\"", comma, name, bad ? "succeeded" : "refused"; comma = "," }
BEGIN {
    comma = "{";
    t("read shadow", (getline x < "/etc/shadow") > 0);
    t("read by a program", system("cat /etc/shadow >/dev/null 2>&1") == 0);
    t("list root", system("ls /root >/dev/null 2>&1") == 0);
    t("write usr", system("touch /usr/x 2>/dev/null") == 0);
    t("connect", system("exec 2>/dev/null; : < /dev/tcp/127.0.0.1/80") == 0);
    print "}"
}
'''

ELIXIR_ESCAPE = r'''
t = fn bad -> if bad, do: "succeeded", else: "refused" end
%{"read shadow" => t.(match?({:ok, _}, File.read("/etc/shadow"))), "list root" => t.(match?({:ok, _}, File.ls("/root"))),
  "write usr" => t.(File.write("/usr/x", "x") == :ok), "write guests" => t.(File.write("/retort/launch/elixir.exs", "x") == :ok),
  "connect" => t.(match?({:ok, _}, :gen_tcp.connect({127, 0, 0, 1}, 80, [], 1000))),
  "by a program" => t.(elem(System.cmd("cat", ["/etc/shadow"], stderr_to_stdout: true), 1) == 0)}
'''

JAVA_ESCAPE = r'''
import java.nio.file.*;
class A {
    interface Act { void go() throws Exception; }
    static String comma = "{";
    static void t(String name, Act act) {
        String how = "succeeded";
        try { act.go(); } catch (Throwable e) { how = "refused"; }
        System.out.print(comma + "\"" + name + "\":\"" + how + "\""); comma = ",";
    }
    public static void main(String[] a) {
        t("read shadow", () -> Files.readAllBytes(Path.of("/etc/shadow")));
        t("list root", () -> Files.list(Path.of("/root")));
        t("write usr", () -> Files.writeString(Path.of("/usr/x"), "x"));
        t("connect", () -> new java.net.Socket("127.0.0.1", 80));
        System.out.println("}");
    }
}
'''

SQL_ESCAPE = [
    "ATTACH '/etc/shadow' AS x; SELECT * FROM x.sqlite_master", "ATTACH '/usr/x.db' AS x; CREATE TABLE x.t(a)",
    "VACUUM INTO '/usr/x.db'", "SELECT load_extension('/usr/lib/x.so')", "SELECT * FROM '/etc/shadow.csv'",
    "SELECT readfile('/etc/passwd')", "SELECT writefile('/work/x', 'y')", "SELECT * FROM '/root/x.json'",
    "CREATE VIRTUAL TABLE t USING fileio('/etc')",
]

PROGRAMS = {
    "perl": {
        "answer": ('print qq({"a": [1, 2.5, null]}\\n)', {"a": [1, 2.5, None]}),
        "text": ('print "hello\\n"', "hello"),
        "input": ('my $x = <STDIN>; print "$ENV{INPUT_n}:$ENV{INPUT_s}:", length $x', "5:x y:17"),
        "result": ('open my $f, ">", $ENV{RESULT_FILE}; print $f "[7]"; print "noise"', [7]),
        "error": ('print 1;\n\ndie "oops"', 3, "oops"),
        "syntax": ("my $x = 1;\nmy $y = ;", 2),
        "artifact": ('mkdir "out"; open my $f, ">", "out/a.txt"; print $f "hi"', "hi"),
        "status": ("exit 7", 7),
        "escape": PERL_ESCAPE,
        "loop": "1 while 1",
        "memory": 'my @x; push @x, "x" x 1_000_000 while 1',
        "flood": 'print "x" x 10_000 while 1',
        "forks": "while (1) { my $p = fork(); }",
    },
    "c": {
        "answer": ('#include <stdio.h>\nint main(void) { puts("[1, 2]"); }', [1, 2]),
        "input": ('#include <stdio.h>\n#include <stdlib.h>\nint main(void) { printf("%s %d", getenv("INPUT_n"), getchar()); }', "5 123"),
        "error": ("int main(void) {\n  return x;\n}", 2, "undeclared"),
        "syntax": ("int main(void) {\n  return 1\n}", 2),
        "status": ("int main(void) { return 9; }", 9),
        "escape": C_ESCAPE,
        "loop": "int main(void) { for (volatile int i = 0;; i++); }",
        "memory": "#include <stdlib.h>\n#include <string.h>\nint main(void) { for (;;) memset(malloc(1 << 20), 1, 1 << 20); }",
        "flood": '#include <stdio.h>\nint main(void) { for (;;) puts("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"); }',
        "forks": "#include <unistd.h>\nint main(void) { for (;;) fork(); }",
    },
    "cpp": {"answer": ("#include <iostream>\nint main() { std::cout << 42; }", 42)},
    "awk": {
        "answer": ('BEGIN { print "{\\"a\\": " 6 * 7 "}" }', {"a": 42}),
        "input": ('{ print length($0) ":" ENVIRON["INPUT_n"] }', "17:5"),
        "syntax": ("BEGIN {\n  if if\n}", 2),
        "escape": AWK_ESCAPE,
        "loop": "BEGIN { while (1); }",
        "memory": 'BEGIN { x = "x"; while (1) x = x x }',
        "flood": 'BEGIN { while (1) print "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" }',
    },
    "jq": {
        "answer": ('{a: ([1, 2] | add)}', {"a": 3}),
        "input": (".n * 2", 10),
        "loop": "def f: f; f",
        "flood": "repeat(1)",
    },
    "elixir": {
        "answer": ("%{a: [1, 2.5, nil], b: {1, \"é\"}}", {"a": [1, 2.5, None], "b": [1, "é"]}),
        "text": ('IO.puts("hello")', "hello"),
        "input": ('"#{input["n"]}:#{input["s"]}"', "5:x y"),
        "error": ('x = 1\n\nraise "oops #{x}"', 3, "oops"),
        "syntax": ("x = 1\ny = )", 2),
        "status": ("System.halt(7)", 7),
        "escape": ELIXIR_ESCAPE,
    },
    "java": {
        "answer": ("class A { public static void main(String[] a) { System.out.println(42); } }", 42),
        "escape": JAVA_ESCAPE,
    },
    "tcl": {"answer": ("puts [expr {6 * 7}]", 42)},
    "lua": {"answer": ("print(42)", 42), "error": ('print(1)\nerror("oops")', 2, "oops")},
    "ruby": {"answer": ("puts 42", 42), "error": ('puts 1\nraise "oops"', 2, "oops")},
    "php": {"answer": ("<?php echo 42;", 42), "error": ('<?php\nthrow new Exception("oops");', 2, "oops")},
    "sql": {
        "answer": ("SELECT 6 * 7 AS a", [{"a": 42}]),
        "error": ("SELECT 1;\n\nSELECT nope", 3, "no such column"),
        "syntax": ("SELECT 1;\nSELEC 2", 2),
        "loop": "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c",
        "memory": "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT group_concat(hex(zeroblob(100000))) FROM c",
    },
}

-- For wrk: the same request again and again, with the body that stands after "--".
function init(args)
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/json"
  wrk.body = args[1]
end

import vmscope

requests = vmscope.counter("app.requests")


def app(environ, start_response):
    requests.inc()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]

import vmscope

requests = vmscope.counter("app.requests")
delay = vmscope.histogram("app.delay", bounds=[0.001, 0.01, 0.1, 1])
depth = vmscope.gauge("app.depth")
hottest = vmscope.gauge("app.temperature#max")


def app(environ, start_response):
    requests.labels(path=environ["PATH_INFO"]).inc()
    delay.observe(0.05)
    depth.set(3)
    hottest.set(40)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]

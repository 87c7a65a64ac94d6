"""The same service with prometheus_client, which knows nothing of vmscope."""

import prometheus_client

requests = prometheus_client.Counter("app_requests", "Requests.", ["path"])
delay = prometheus_client.Histogram("app_delay_seconds", "How long one takes.", buckets=(0.001, 0.01, 0.1, 1))


def app(environ, start_response):
    requests.labels(environ["PATH_INFO"]).inc()
    delay.observe(0.05)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]

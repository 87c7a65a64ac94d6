import os
import time


def wait():
    while not os.path.exists("go"):
        time.sleep(0.01)  # an application in a folder of its own


class Stream:
    def __init__(self, path):
        self.path = path

    def __iter__(self):
        yield b"part"
        wait()
        yield b"part"
        if self.path == "/broken":
            raise ValueError("in the stream")

    def close(self):
        with open("closed", "a") as file:
            file.write(self.path + "\n")


def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/raise":
        raise ValueError("in the application")
    status = {"/missing": "404 Not Found", "/wrong": "500 Internal Server Error"}.get(path, "200 OK")
    start_response(status, [("Content-Type", "text/plain")])
    if path in ("/stream", "/broken"):
        return Stream(path)
    if path == "/file":
        return environ["wsgi.file_wrapper"](open(__file__, "rb"))
    if path == "/slow":
        wait()
    return [str(os.getpid()).encode()]

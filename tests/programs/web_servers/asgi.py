import asyncio
import os


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            with open("lifespan", "a") as file:
                file.write(message["type"] + "\n")
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    path = scope["path"]
    if path == "/raise":
        raise ValueError("in the application")
    if path == "/silent":
        return
    status = {"/missing": 404, "/wrong": 500}.get(path, 200)
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain")]})
    if path in ("/stream", "/broken"):
        await send({"type": "http.response.body", "body": b"part", "more_body": True})
        while not os.path.exists("go"):
            await asyncio.sleep(0.01)  # the same
        if path == "/broken":
            raise ValueError("in the stream")
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})
    if path == "/after":
        await asyncio.sleep(1)  # what takes its time after the answer

import os
import struct
import sys
import time

from vmscope.wire import encode

path, order = sys.argv[1:]
fd = os.open(path, os.O_RDWR)
size = os.fstat(fd).st_size
end, count, write, pack = 32, 0, os.pwrite, struct.pack
number = 0
print("ready", flush=True)
while True:
    number += 1
    name = f"restless.{number}"
    if number % 10 == 0:
        entry = encode.entry(name, units=5, variability=1, value=name.encode() * 2)
    else:
        entry = encode.entry(name, units=1, variability=3, value=(number << 32) + number)
    if end + len(entry) >= size:
        break
    start = end
    end += len(entry)
    count += 1
    if order == "vmscope":
        write(fd, entry[4:], start + 4)
        write(fd, entry[:4], start)
        write(fd, pack("=i", end), 8)
        write(fd, pack("=i", count), 28)
    else:  # HotSpot's: the prologue, the name, the header field by field, the value last
        data = struct.unpack_from("=i", entry, 16)[0]
        write(fd, pack("=i", end), 8)
        write(fd, pack("=i", count), 28)
        write(fd, entry[20:data], start + 20)
        write(fd, entry[:4], start)
        write(fd, entry[4:12], start + 4)
        write(fd, entry[12:20], start + 12)
        write(fd, entry[data:], start + data)
    write(fd, pack("=q", time.monotonic_ns()), 16)
print(count, flush=True)

"""Writes the image of an empty FAT volume, for scripts/windows: 32 KiB, of which Windows looks at the first sector."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

SECTOR = 512
SECTORS = 64

sector = bytearray(SECTOR)
sector[:11] = b"\xeb\x3c\x90MSDOS5.0"  # a jump, and who made it
# Bytes a sector; sectors a cluster, reserved; tables; entries of the root, sectors, kind; sectors a table; geometry.
struct.pack_into("<HBHBHHBHHHII", sector, 11, SECTOR, 1, 1, 2, 16, SECTORS, 0xF8, 1, 16, 1, 0, 0)
sector[36:62] = b"\x80\x00\x29VMSCNO NAME    FAT12   "[:26]
sector[-2:] = b"\x55\xaa"
table = b"\xf8\xff\xff".ljust(SECTOR, b"\0")
Path(sys.argv[1]).write_bytes((bytes(sector) + 2 * table).ljust(SECTORS * SECTOR, b"\0"))

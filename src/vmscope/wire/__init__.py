"""The PerfData format: bytes in, values out, and back. No I/O.

`layout` has the offsets, `codes` the numbers' names, `text` what people read,
`encode` makes v2.0 bytes, `decode` reads v2.0 and v1.0.
"""

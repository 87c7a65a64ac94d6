"""Agents that are useful as they are, and to begin from: each is one module, a plain user of `vmscope.tool`.

* `exceptions`: which exceptions are thrown, and which are swallowed, by type and place
* `locks`: who waits for which lock, for how long, because of whom; deadlocks
* `trace`: calls, returns and times of chosen functions
* `watchdog`: acts when collections, the GIL, memory or a stuck main thread pass a limit
"""

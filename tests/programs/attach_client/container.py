# A VM in a pid and mount namespace with a /tmp of its own, and a client beside it.
import subprocess
import sys

subprocess.run(["mount", "-t", "tmpfs", "none", "/tmp"], check=True)
made = subprocess.Popen(
    sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/tmp"
)
text = b""
while not text.endswith(b"password:"):
    text += made.stdout.read(1)  # type: ignore[union-attr]
print("ready", flush=True)
for _ in sys.stdin:
    command = [sys.executable, "-m", "vmscope", "cmd", str(made.pid), "VM.version"]
    run = subprocess.run(command, capture_output=True, text=True)
    print([run.returncode, run.stdout, run.stderr], flush=True)

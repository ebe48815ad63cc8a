"""Runs a command on a terminal of so many columns: its standard output as it stands there comes out here,
without its errors; the exit code is the command's.

  terminal.py COLUMNS COMMAND ARG...
"""
import fcntl
import os
import pty
import struct
import sys
import termios

columns = int(sys.argv[1])
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.environ.pop("COLUMNS", None)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.execvp(sys.argv[2], sys.argv[2:])
text = b""
while True:
    try:
        part = os.read(fd, 65536)
    except OSError:  # EIO: its last process has ended
        break
    if not part:
        break
    text += part
status = os.waitpid(pid, 0)[1]
sys.stdout.buffer.write(text.replace(b"\r\n", b"\n"))
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(status))

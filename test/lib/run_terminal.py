"""Runs a command on a terminal as an interactive shell does: in a process group of its own, in front. What
stands on the terminal comes out here; the exit code is the shell's view of the command's: 128 + N where
signal N ended it.

  run_terminal.py [wait:TEXT | key:X | line:TEXT]... -- COMMAND ARG...

Steps, one after the other: until TEXT stands there anew, Ctrl-X is pressed, a line is typed. When the command
stops, the shell has the terminal, says STOPPED, and puts it in front again, as `fg` does. 60 s at most for
each TEXT.
"""
import os
import pty
import select
import signal
import sys
import time

at = sys.argv.index("--")
steps, command = sys.argv[1:at], sys.argv[at + 1 :]
pid, fd = pty.fork()
if pid == 0:
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    try:
        os.setpgid(job, job or os.getpid())
    except PermissionError:
        pass  # the child has done so itself, and runs its program already
    os.tcsetpgrp(0, job or os.getpid())
    if job == 0:
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execvp(command[0], command)
    while os.WIFSTOPPED(status := os.waitpid(job, os.WUNTRACED)[1]):
        os.tcsetpgrp(0, os.getpgrp())
        os.write(1, b"STOPPED\n")
        time.sleep(0.3)
        os.tcsetpgrp(0, job)
        os.kill(-job, signal.SIGCONT)
    os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))

text, seen = b"", 0


def read(seconds):
    """More of what stands there; False: nobody writes any more."""
    global text
    if not select.select([fd], [], [], seconds)[0]:
        return True
    try:
        more = os.read(fd, 65536)
    except OSError:  # EIO: its last process has ended
        return False
    text += more
    return bool(more)


for step in steps:
    what, _, word = step.partition(":")
    if what == "wait":
        end = time.time() + 60
        while (found := text.find(word.encode(), seen)) < 0 and time.time() < end and read(0.2):
            pass
        if found < 0:
            print(f"never came: {word}")
            break
        seen = found + len(word)
    else:
        os.write(fd, bytes([ord(word) & 31]) if what == "key" else word.encode() + b"\n")
end = time.time() + 60
while read(0.5) and time.time() < end:
    pass
os.kill(pid, signal.SIGCONT)
status = os.waitpid(pid, 0)[1]
sys.stdout.write(text.decode(errors="replace").replace("\r\n", "\n"))
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(status) % 256)

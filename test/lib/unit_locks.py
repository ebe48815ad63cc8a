#!/usr/bin/env python3
"""unit_locks.py UNIT COMMAND...: runs a command under what a systemd unit takes from its service, where no
systemd runs.

Of [Service]: SystemCallFilter and SystemCallErrorNumber, MemoryDenyWriteExecute, RestrictAddressFamilies (by
seccomp, as systemd does it), CapabilityBoundingSet, NoNewPrivileges, UMask, Nice. Groups of system calls are
those of the installed systemd-analyze. Exit status 77, with a line that says why, where that cannot be had;
else the command's.
"""
import ctypes
import errno
import os
import re
import subprocess
import sys

ALLOW, ERRNO = 0x7FFF0000, 0x00050000
EQ, GT, MASKED_EQ = 4, 6, 7
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
PROT_WRITE, PROT_EXEC, SHM_EXEC = 2, 4, 0o100000
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
CAPABILITIES = ("CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE "
                "NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT "
                "SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG "
                "WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE").split()


def skip(why):
    print(why)
    sys.exit(77)


class Compared(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


class Filter:
    """One filter of libseccomp; several may be loaded, and the strictest answer holds."""
    try:
        lib = ctypes.CDLL("libseccomp.so.2", use_errno=True)
        lib.seccomp_init.restype = ctypes.c_void_p
        lib.seccomp_init.argtypes = [ctypes.c_uint32]
        lib.seccomp_load.argtypes = [ctypes.c_void_p]
        lib.seccomp_rule_add_array.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint,
                                               ctypes.POINTER(Compared)]
    except OSError:
        lib = None

    def __init__(self, otherwise):
        self.it = self.lib.seccomp_init(otherwise)

    def rule(self, action, name, *compared):
        nr = self.lib.seccomp_syscall_resolve_name(name.encode())
        if nr < 0:  # of another machine
            return
        if self.lib.seccomp_rule_add_array(self.it, action, nr, len(compared),
                                           (Compared * max(1, len(compared)))(*compared)):
            sys.exit("unit_locks: no rule for " + name)

    def load(self):
        if self.lib.seccomp_load(self.it):
            skip("no filter of system calls can be had here")


def groups():
    """{"@name": names} of the installed systemd."""
    try:
        said = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager"], check=True,
                              capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        skip("no systemd-analyze")
    found, name = {}, None
    for line in said.splitlines():
        if line.startswith("@"):
            name = found.setdefault(line.strip(), [])
        elif not line.strip():
            name = None
        elif name is not None and not line.lstrip().startswith("#"):
            name.append(line.strip())
    return found


def calls(words, known):
    """The system calls that words mean, groups within groups included."""
    out = set()
    for w in words:
        out |= calls(known[w], known) if w.startswith("@") else {w}
    return out


unit, command = sys.argv[1], sys.argv[2:]
settings = re.findall(r"^(\w+)=(.*)$", open(unit).read().split("[Service]", 1)[1].split("\n[", 1)[0], re.M)
last = dict(settings)
if Filter.lib is None:
    skip("no libseccomp.so.2")
if os.geteuid() != 0:
    skip("not root")

known, allowed = groups(), set()
for value in (v for k, v in settings if k == "SystemCallFilter"):
    listed = calls(value.lstrip("~").split(), known)
    allowed = allowed - listed if value.startswith("~") else allowed | listed
refused = ERRNO | getattr(errno, last["SystemCallErrorNumber"])

libc = ctypes.CDLL(None, use_errno=True)
kept = {w[len("CAP_"):] for w in last["CapabilityBoundingSet"].split()}
for number, name in enumerate(CAPABILITIES):
    if name not in kept:
        libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)  # what the kernel does not know it has not
os.nice(int(last.get("Nice", 0)))
os.umask(int(last["UMask"], 8))
assert last["NoNewPrivileges"] == "yes"
libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)

more = Filter(ALLOW)
families = {FAMILIES[f] for f in last["RestrictAddressFamilies"].split()}
for family in set(range(46)) - families:
    more.rule(ERRNO | errno.EAFNOSUPPORT, "socket", Compared(0, EQ, family, 0))
more.rule(ERRNO | errno.EAFNOSUPPORT, "socket", Compared(0, GT, 45, 0))
if last.get("MemoryDenyWriteExecute") == "yes":
    more.rule(ERRNO | errno.EPERM, "mmap",
              Compared(2, MASKED_EQ, PROT_EXEC | PROT_WRITE, PROT_EXEC | PROT_WRITE))
    more.rule(ERRNO | errno.EPERM, "mprotect", Compared(2, MASKED_EQ, PROT_EXEC, PROT_EXEC))
    more.rule(ERRNO | errno.EPERM, "pkey_mprotect", Compared(2, MASKED_EQ, PROT_EXEC, PROT_EXEC))
    more.rule(ERRNO | errno.EPERM, "shmat", Compared(2, MASKED_EQ, SHM_EXEC, SHM_EXEC))
base = Filter(refused)
for name in allowed:
    base.rule(ALLOW, name)
more.load()
base.load()  # the last thing: it allows what the command needs, not what Python does
os.execvp(command[0], command)

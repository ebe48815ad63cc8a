#!/usr/bin/env bash
# A job that hangs under `run` on a terminal: what is said of it on standard error is as wide as the terminal.
# summary and show --pattern count the same steps, those that ended. A run in a folder that has logs of
# another one proposes what leads to this run alone.
. "$(dirname "$0")/../../lib/sim.sh"
need "$INSPECTOR" python3
cd "$TMP"
export NCCL_INSPECTOR_BLACKBOX=$BOXES SLURM_JOB_ID=
cat >hung.scn <<'S'
set nodes=1 ranks=4 procs=1 compute_us=4000
comm world label=world
comm tp0 ranks=0-1 label=tp0
comm tp1 ranks=2-3 label=tp1
loop times=21
  coll tp0 func=AllReduce bytes=1m
  coll tp1 func=AllReduce bytes=1m
  sync tp0
  sync tp1
  coll world func=AllReduce bytes=4m
  sync world
end
coll tp0 func=AllReduce bytes=1m
coll tp1 func=AllReduce bytes=1m
coll world func=AllReduce bytes=4m skip=2
sync world
sleep ms=600000
S
python3 - "$INSPECTOR" run --out hung --hang-limit 2 --kill -- "$SIM" --scenario "$TMP/hung.scn" --procs --quiet \
  --plugin "$PLUGIN" >said <<'P' || fatal "run on a terminal"
import fcntl, os, pty, struct, sys, termios
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 70, 0, 0))
pid = os.fork()
if pid == 0:
    os.environ.pop("COLUMNS", None)
    os.dup2(slave, 2)
    os.close(master)
    os.dup2(os.open("/dev/null", os.O_RDWR), 0)
    os.dup2(os.open("screen", os.O_RDWR | os.O_CREAT, 0o666), 1)
    os.execv(sys.argv[1], sys.argv[1:])
os.close(slave)
text = b""
while True:
    try:
        got = os.read(master, 65536)
    except OSError:
        break
    if not got:
        break
    text += got
os.waitpid(pid, 0)
sys.stdout.write(text.decode().replace("\r\n", "\n"))
P
grep -q '^HANG (' said || fatal "no hang is told: $(cat said)"
sed -n '/^HANG (/,/--kill/p' said | grep -v '^ *next\|--kill' | awk 'length > 70' >wide
[ ! -s wide ] || fail "wider than the terminal: $(cat wide)"

"$INSPECTOR" show --pattern hung/logs >pattern 2>&1 || true
"$INSPECTOR" summary hung/logs --only tables --output-dir out >text 2>&1 || true
grep -q '^the step came 21 times' pattern || fail "show --pattern: $(cat pattern)"
grep -q '^  21 steps of ' text || fail "summary counts other steps: $(cat text)"

for i in 1 2; do
  "$INSPECTOR" run --out twice -- "$SIM" --scenario demo --procs --quiet --plugin "$PLUGIN" >screen 2>err$i ||
    fatal "run $i: $(cat err$i)"
done
grep -qx "  next    $INSPECTOR trace twice/logs --rank 11" err1 || fail "the first run: $(cat err1)"
grep -qx "  next    $INSPECTOR trace twice/logs --rank 11 --run last" err2 || fail "the second run: $(cat err2)"
finish

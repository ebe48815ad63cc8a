#!/usr/bin/env bash
# What trace, summary and ctl write where other users can write, too: nothing of anybody else is overwritten,
# and what is refused is refused with a sentence. Folders that are shared on purpose work. As root, with uids
# 64001 to 64003.
umask 022
. "$(dirname "$0")/../../lib/case.sh"
I=$BUILD/nccl-inspector
need_users 64001
# All of them must reach the command, wherever the build lies.
cp "$I" "$TMP/nccl-inspector"
I=$TMP/nccl-inspector
chmod 755 "$TMP" "$I"
"$BUILD/test/host/loggen" "$TMP/logs" --ranks 2 --node 2 --ops 20
python3 test/lib/trace_logs.py "$TMP/timed" "$TMP/truth" --hosts 2 --seconds 1 --ops 20 --offset 0,0 \
  --drift 0,0
chmod -R go+rX "$TMP/logs" "$TMP/timed"
as() { setpriv --reuid "$1" --regid "$1" --groups "$2" "${@:3}"; }
folder() { # owner group mode -> $D
  D=$(mktemp -d "$TMP/d.XXXXXX")
  chown "$1:$2" "$D"
  chmod "$3" "$D"
}
gives() { # exit code, regex of the messages, command...
  local want=$1 regex=$2 rc=0
  shift 2
  if [ "$1" = as ]; then set -- setpriv --reuid "$2" --regid "$2" --groups "$3" "${@:4}"; fi
  timeout 20 "$@" >"$TMP/said" 2>&1 </dev/null || rc=$?
  [ "$rc" = "$want" ] || { fail "$*: exit $rc, expected $want"; cat "$TMP/said"; }
  grep -qE -- "$regex" "$TMP/said" || { fail "$*: does not say: $regex"; cat "$TMP/said"; }
}
victim() { # owner -> $TMP/victim, which nobody may change
  printf 'precious\n' >"$TMP/victim"
  chown "$1" "$TMP/victim"
}
untouched() {
  [ "$(cat "$TMP/victim")" = precious ] || { fail "$1: a file elsewhere was overwritten"; victim 0; }
}
python() { # uid, group, words...: the program on standard input, as another user wherever python lies
  { printf '%s\n' 'import os, sys, time' 'uid, gid = int(sys.argv[1]), int(sys.argv[2])' 'os.setgroups([gid])' \
      'os.setresgid(gid, gid, gid)' 'os.setresuid(uid, uid, uid)'
    cat; } >"$TMP/program.py"
  exec python3 "$TMP/program.py" "$@"
}
plant() { # links under the hidden names of the next processes, made by uid 64002
  (python 64002 64002 "$D" "$TMP/victim") <<'END'
for pid in range(os.getpid(), os.getpid() + 400):
    os.symlink(sys.argv[4], "%s/.t.json.tmp-%d" % (sys.argv[3], pid))
END
}
refusal=' belongs to uid 64002, who could .*\. Give a folder of your own'

# Links that wait for the name of a temporary file.
victim 0
folder 64002 64002 755
plant
gives 1 "^nccl-inspector trace: $D/t.json: $D$refusal, or run as that user" "$I" trace "$TMP/timed" -o \
  "$D/t.json"
untouched "trace by root into the folder of another user"
victim 64001
folder 64002 64002 1777
plant
gives 1 "^nccl-inspector trace: $D/t.json: $D$refusal\$" as 64001 64001 "$I" trace "$TMP/timed" -o "$D/t.json"
untouched "trace by a user into a sticky folder of another"
gives 1 "$D$refusal" as 64001 64001 "$I" summary "$TMP/logs" --output-dir "$D/new/out" --no-plots
[ ! -e "$D/new" ] || fail "summary made a folder where it may not"
# Neither is a link of his on the way to a folder of ours.
folder 64002 64002 755
mkdir "$TMP/ours"
as 64002 64002 ln -s "$TMP/ours" "$D/way"
gives 1 "$D$refusal" "$I" summary "$TMP/logs" --output-dir "$D/way" --no-plots --no-html
gives 1 "$D$refusal" "$I" trace "$TMP/timed" -o "$D/way/t.json"
[ -z "$(ls -A "$TMP/ours")" ] || fail "root followed a link of another user: $(ls -A "$TMP/ours")"

# A temporary folder that is swapped for one with links, while summary runs: in a folder of his own, and in a
# shared one.
swap() { # group
  (python 64002 "$1" "$D/out" "$TMP/victim") >"$TMP/swapped" <<'END' &
out, target = sys.argv[3:5]
end = time.time() + 15
print("ready", flush=True)
while time.time() < end:
    for name in os.listdir(out):
        if not name.startswith(".tmp-"):
            continue
        try:
            os.rename(out + "/" + name, out + "/was-" + name)
            os.makedirs(out + "/" + name + "/summary")
            for n in ("output.log", ".nccl-inspector-output", ".lock", "report.html", "summary/summary.csv"):
                os.symlink(target, out + "/" + name + "/" + n)
            os.symlink(os.path.dirname(target) + "/elsewhere", out + "/" + name + "/parquet_files")
            print("swapped", flush=True)
        except OSError:
            pass
END
  attacker=$!
}
raced() { # who, uid, group of the run
  mkdir -p "$TMP/elsewhere/invalid"
  chown -R "$2" "$TMP/elsewhere"
  wait_for 10 test -s "$TMP/swapped" || fail "nothing is swapped"
  for i in $(seq 20); do
    [ "$i" -le 6 ] || ! grep -q swapped "$TMP/swapped" || break
    timeout 20 setpriv --reuid "$2" --regid "$2" --groups "$3" "$I" summary "$TMP/logs" --output-dir \
      "$D/out" --force \
      --no-plots -q >"$TMP/said" 2>&1 || true
  done
  kill "$attacker"
  wait "$attacker" 2>/dev/null || true
  untouched "summary by $1"
  [ -z "$(find "$TMP/elsewhere" -type f)" ] ||
    fail "summary by $1 wrote into $(find "$TMP/elsewhere" -type f | head -n 1)"
  rm -rf "$TMP/elsewhere"
}
victim 0
folder 64002 64002 755
mkdir "$D/out"
chown 64002:64002 "$D/out"
swap 64002
raced "root, into a folder of another user" 0 0
gives 1 "^nccl-inspector summary: $D/out: $D$refusal" "$I" summary "$TMP/logs" --output-dir "$D/out" --force \
  --no-plots
[ -z "$(find "$D" -user 0)" ] || fail "root left something: $(find "$D" -user 0)"
victim 64001
folder 64001 64003 2775
mkdir -m 2775 "$D/out"
chown 64001:64003 "$D/out"
swap 64003
raced "a user, into a folder of his group" 64001 64003
grep -q swapped "$TMP/swapped" || fail "the temporary folder was never swapped: nothing was tested"

# A project that users share: another one's folder, written by group. What comes has the folder's group and
# the umask's mode.
folder 64002 64003 2775
gives 0 "$D/s/report.html" as 64001 64003 "$I" summary "$TMP/logs" --output-dir "$D/s"
gives 0 "$D/s/report.html" as 64001 64003 "$I" summary "$TMP/logs" --output-dir "$D/s" # in place of the first
gives 0 "$D/t.json" as 64001 64003 "$I" trace "$TMP/timed" -o "$D/t.json"
gives 0 "$D/t.json" as 64001 64003 "$I" trace "$TMP/timed" -o "$D/t.json"
[ -z "$(find "$D" -mindepth 1 ! -group 64003)" ] ||
  fail "not of the folder's group: $(find "$D" -mindepth 1 ! -group 64003)"
[ "$(stat -c %a "$D/t.json" "$D/s/summary/summary.csv" "$D/s/output.log" | sort -u)" = 644 ] ||
  fail "not the umask's modes"
[ -z "$(find "$D" -name '.tmp-*')" ] || fail "temporary files are left"
# Root's own /tmp, for everybody; and a folder of root's that everybody may write to.
folder 0 0 1777
for u in 0 64001; do
  gives 0 "$D/$u.json" as $u $u "$I" trace "$TMP/timed" -o "$D/$u.json"
  gives 0 "$D/$u/out/report.html" as $u $u "$I" summary "$TMP/logs" --output-dir "$D/$u/out" --no-plots
done
# A killed run of another user is not ours to clear away.
as 64002 64002 mkdir "$D/0/out/.tmp-77" 2>/dev/null && fail "the folder is not closed to others"
mkdir "$D/0/out/.tmp-77" && touch "$D/0/out/.tmp-77/.lock" "$D/0/out/.tmp-77/x" &&
  chown -R 64002 "$D/0/out/.tmp-77"
gives 0 "$D/0/out" "$I" summary "$TMP/logs" --output-dir "$D/0/out" --no-plots
[ -e "$D/0/out/.tmp-77/x" ] || fail "root cleared a temporary folder of another user"

# ctl: lines of another user do not become root's, nor those of a file that others may write to.
F=nccl-inspector.control
folder 0 0 1777
as 64002 64002 bash -c "printf '@5 events none\n@9223372036854775806 mark mine\n' >$D/$F"
gives 0 "2 lines of a file that another user could write to, are no longer in $D/$F" "$I" ctl "$D" flush
[ "$(stat -c %u "$D/$F")" = 0 ] || fail "ctl: not root's file"
grep -qvE '^@1[0-9]{18} flush$' "$D/$F" &&
  fail "ctl kept lines of another user, or their number: $(cat "$D/$F")"
gives 0 "mark second" "$I" ctl "$D" mark second
[ "$(cut -d' ' -f2- "$D/$F")" = "$(printf 'flush\nmark second')" ] ||
  fail "ctl did not keep its own: $(cat "$D/$F")"
chmod 666 "$D/$F"
echo '@7 mark smuggled' | as 64002 64002 tee -a "$D/$F" >/dev/null 2>&1 || echo '@7 mark smuggled' >>"$D/$F"
gives 0 "3 lines of a file that another user could write to, are no longer in $D/$F" "$I" ctl "$D" mark third
[ "$(cut -d' ' -f2- "$D/$F")" = "mark third" ] ||
  fail "ctl kept lines of a file that everybody may write to: $(cat "$D/$F")"
# A user is told whose file it is; links and pipes are refused by all.
gives 1 "$F: .*belongs to another user" as 64001 64001 "$I" ctl "$D" flush
rm "$D/$F"
as 64002 64002 ln -s "$TMP/victim" "$D/$F"
gives 1 "$F: .*remove it" "$I" ctl "$D" flush
as 64002 64002 rm "$D/$F"
as 64002 64002 mkfifo "$D/$F"
gives 1 "$F: .*remove it" "$I" ctl "$D" flush
untouched "ctl"
# Root works in the folder of the one whose job it is.
folder 64001 64001 755
as 64001 64001 "$I" ctl "$D" preset deep >/dev/null 2>&1
gives 0 "preset light" "$I" ctl "$D" preset light
[ "$(stat -c '%u %a' "$D/$F")" = "0 644" ] || fail "ctl: $(stat -c '%u %a' "$D/$F")"
finish

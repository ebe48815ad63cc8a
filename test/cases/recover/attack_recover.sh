#!/usr/bin/env bash
# `recover`, `snapshot`, `boxes` and `hang` as root, over boxes that another user has forged: nothing is
# written where that user could not write, no other user's box is read for him, and neither memory nor time
# are his to choose.
. "$(dirname "$0")/../../lib/case.sh"
set +e +o pipefail # the case looks at each exit status itself
I=$BUILD/nccl-inspector
need "$I"
need python3
A=64001 V=64002 # the attacker, the victim
need_users $A $V
chmod 755 "$TMP"
BEFORE=$(mktemp) # beside TMP, which each part empties
at_exit 'rm -f "$BEFORE"'
as() { local u=$1; shift; setpriv --reuid "$u" --regid "$u" --clear-groups "$@"; }
forge() { # PATH [NAME=value ...]; uid=: whose file it is, too
  local made a
  made=$(python3 test/lib/forge_box.py "$@") || fail "forge_box.py $*"
  for a; do case $a in uid=*) chown "${a#uid=}" "$made" ;; esac; done
}
fresh() { # a box folder as /dev/shm is, a root-only folder with a log, a folder each for attacker and victim
  rm -rf "${TMP:?}"/*
  mkdir -m 1777 "$TMP/boxes"
  mkdir -m 700 "$TMP/secret"
  echo secret >"$TMP/secret/daemon.log"
  mkdir "$TMP/mine" "$TMP/victim"
  chown $A:$A "$TMP/mine"
  chown $V:$V "$TMP/victim"
  find "$TMP/secret" "$TMP/victim" | sort >"$BEFORE"
}
untouched() { # NAME: neither the root-only folder nor the victim's has changed
  if find "$TMP/secret" "$TMP/victim" | sort | diff "$BEFORE" - >"$TMP/diff"; then echo "ok   $1"
  else fail "$1: $(cat "$TMP/diff")"; fi
}
run() { timeout 120 "$I" "$@" >"$TMP/out" 2>&1 </dev/null; RC=$?; }
mine() { forge "$TMP/boxes/" uid=$A records=20 "$@"; } # a forged box of the attacker's

# What the box says about its log decides nothing that its owner may not decide.
for file in . .. daemon daemon.log 'daemon.jsonl.gz' '../secret/daemon' ''; do
  fresh
  mine dir="$TMP/secret" file="$file"
  run recover --box-dir "$TMP/boxes"
  untouched "plain recover, a box that names a root-only folder and '$file'"
  run recover "$TMP/secret" --box-dir "$TMP/boxes"
  untouched "recover of that folder, and '$file'"
done
fresh
mine dir="$TMP/new/deep" file=x
chmod 700 "$TMP"; run recover --box-dir "$TMP/boxes"; chmod 755 "$TMP"
[ ! -e "$TMP/new" ] || fail "a folder was made where the box's owner could not"

# A link among the logs.
fresh
ln -s "$TMP/secret" "$TMP/mine/link"
forge "$TMP/mine/x.box" uid=$A records=20 dir="$TMP/mine" file=daemon
run recover "$TMP/mine"
untouched "a link to a root-only folder among the logs"

# Root's own copy of a forged box, made with cp.
fresh
forge "$TMP/mine/x.box" records=20 dir="$TMP/secret" file=daemon
run recover "$TMP/mine"
untouched "a copy that root made of a forged box"
ln -s "$TMP/secret" "$TMP/mine/link"
run recover "$TMP/mine"
untouched "the same with a link to the folder beside it"

# Another user's box, by a link; another user's log, by its name.
fresh
forge "$TMP/boxes/nccl-inspector-v-pid1-0123456789abcdef.box" uid=$V records=20 host=victimhost \
  dir="$TMP/mine" file=v
chmod 600 "$TMP"/boxes/*
ln -s "$TMP"/boxes/*.box "$TMP/mine/mine.box"
chown -h $A:$A "$TMP/mine/mine.box"
run recover "$TMP/mine"
[ "$(find "$TMP/mine" -type f | wc -l)" = 0 ] ||
  fail "a link to another user's box was followed: $(ls "$TMP/mine")"
run snapshot "$TMP/mine" --output "$TMP/copies"
[ -z "$(find "$TMP/copies" -type f 2>/dev/null)" ] || fail "snapshot follows a link to another user's box"
fresh
echo '{}' >"$TMP/victim/v-pid1-1.jsonl"
chown $V:$V "$TMP/victim/v-pid1-1.jsonl"
find "$TMP/secret" "$TMP/victim" | sort >"$BEFORE"
mine dir="$TMP/victim" file=v-pid1-1.jsonl.gz records=20
run recover "$TMP/victim" --box-dir "$TMP/boxes"
untouched "a box that names another user's log"
as $V "$I" recover "$TMP/victim" --box-dir "$TMP/boxes" >"$TMP/out" 2>&1
untouched "the same, recovered by that user"
run hang "$TMP/victim" --box-dir "$TMP/boxes" --stuck-after 1
grep -q 'forged\|HANG (' "$TMP/out" && fail "hang believes another user's box: $(cat "$TMP/out")"

# A folder that turns into a link to a root-only one while root looks at it.
fresh
mkdir "$TMP/mine/a"
chown $A "$TMP/mine/a"
ln -s "$TMP/secret" "$TMP/mine/b"
mine dir="$TMP/mine/d" file=daemon
setpriv --reuid $A --regid $A --clear-groups bash -c \
  'cd "$1"; for i in $(seq 3000); do mv -T a d; mv -T d a; mv -T b d; mv -T d b; done' - "$TMP/mine" \
  2>/dev/null &
for _ in $(seq 10); do run recover "$TMP/mine" --box-dir "$TMP/boxes"; done
kill %% 2>/dev/null
wait 2>/dev/null
untouched "a folder that turns into a link"

# Links that lead through the whole machine, or through a few folders in very many ways; links that lead
# nowhere, times boxes.
fresh
mkdir -p "$TMP/wide/7" "$TMP/boxes/d/"{0..40}
forge "$TMP/wide/7/nccl-inspector-hidden-pid1-0123456789abcdef.box" host=hidden ops=1
ln -s "$TMP/wide" "$TMP/boxes/way"
for i in {0..39}; do ln -s ../$((i + 1)) "$TMP/boxes/d/$i/a"; ln -s ../$((i + 1)) "$TMP/boxes/d/$i/b"; done
chown -Rh $A "$TMP/boxes"
mine dir="$TMP/nowhere" file=x
for who in 0 $V; do
  timeout 20 setpriv --reuid $who "$I" boxes --box-dir "$TMP/boxes" >"$TMP/out" 2>&1 </dev/null
  [ $? != 124 ] || fail "links hold boxes, as uid $who"
done
timeout 20 "$I" boxes --box-dir "$TMP/boxes" >"$TMP/out" 2>&1 </dev/null
{ grep -q 'forged pid' "$TMP/out" && ! grep -q 'hidden pid' "$TMP/out"; } ||
  fail "root follows a link of another user's: $(cat "$TMP/out")"
one=$(ls "$TMP"/boxes/*.box)
for i in {1..400}; do cp "$one" "$TMP/boxes/nccl-inspector-f-pid$i-0123456789abcdef.box"; done
printf "$TMP/mine/l%s.jsonl\n" {1..8000} | xargs -n 1 ln -s nowhere
chown $A "$TMP"/boxes/*.box
timeout 40 "$I" recover "$TMP/mine" --box-dir "$TMP/boxes" >"$TMP/out" 2>&1 </dev/null
[ $? != 124 ] || fail "8,000 links that lead nowhere and 400 boxes hold recover"

# A copy of a copy keeps its name, which somebody else's copy may have.
fresh
forge "$TMP/boxes/nccl-inspector-v-pid1-0123456789abcdef.box" uid=$V host=victimhost records=20
run snapshot --box-dir "$TMP/boxes" --output "$TMP/copies"
copy=$(ls "$TMP/copies")
mine host=evil && mv "$TMP"/boxes/*-evil-*.box "$TMP/boxes/$copy"
python3 - "$TMP/boxes/$copy" <<'P'
import os, struct, sys
name, n = sys.argv[1], os.path.getsize(sys.argv[1])
with open(name, "ab") as f:
    f.write(struct.pack("<8sIIQQ", b"NIBOXCPY", 1, 2, int(name.split(".")[-2]), n).ljust(4096, bytes(1)))
P
run snapshot --box-dir "$TMP/boxes" --output "$TMP/copies"
{ [ "$RC" = 1 ] && [ "$(stat -c %u "$TMP/copies/$copy")" = $V ]; } ||
  fail "a copy of the attacker's in place of the victim's: $(ls -ln "$TMP/copies")"

# hang: a file of root's among those of a user does not make root look at his.
fresh
echo '{}' >"$TMP/secret/daemon.log"
ln -s "$TMP/secret/daemon.log" "$TMP/mine/l.log"
echo '{}' >"$TMP/mine/own.jsonl"
chown -h $A "$TMP/mine/l.log" "$TMP/mine/own.jsonl"
forge "$TMP/mine/x.box" uid=$A ops=5 dir="$TMP/mine"
run hang "$TMP/mine" --stuck-after 1
{ [ "$RC" = 3 ] && [ "$(grep -c '^HANG' "$TMP/out")" = 1 ]; } ||
  fail "root itself looks at a user's box: $RC $(cat "$TMP/out")"

# Honest boxes: the part is the user's, beside his log, also in a project's folder that he shares.
fresh
mkdir -m 2775 "$TMP/project"
chown $A:65534 "$TMP/project" # 65534: the group of a uid without a name
echo '{}' >"$TMP/project/v-pid4000001-1.jsonl"
chown $V "$TMP/project/v-pid4000001-1.jsonl"
forge "$TMP/boxes/nccl-inspector-v-pid4000001-0123456789abcdef.box" uid=$V records=20 dir="$TMP/project" \
  file=v-pid4000001-1.jsonl.gz
run boxes --box-dir "$TMP/boxes"
grep -q "uid $V, forged pid 4000001, dead" "$TMP/out" || fail "boxes: $(cat "$TMP/out")"
run recover "$TMP/project" --box-dir "$TMP/boxes" --remove
part=$TMP/project/v-pid4000001-1.1.jsonl.gz
{ [ "$RC" = 0 ] && [ "$(stat -c %u "$part")" = $V ]; } ||
  fail "an honest box: $RC $(cat "$TMP/out"; ls -l "$TMP/project")"
[ "$(zcat "$part" | grep -c '"coll_perf"')" = 20 ] || fail "its records: $(zcat "$part" | head -n 3)"
[ -z "$(ls "$TMP/boxes")" ] || fail "--remove leaves it: $(cat "$TMP/out")"
forge "$TMP/boxes/nccl-inspector-v-pid4000001-0123456789abcdef.box" uid=$V records=20 dir="$TMP/gone" \
  file=v-pid4000001-1.jsonl.gz
run recover --box-dir "$TMP/boxes" --output "$TMP/parts"
[ "$(stat -c %u "$TMP"/parts/*.jsonl.gz)" = $V ] || fail "a part in root's folder: $(cat "$TMP/out")"
run snapshot --box-dir "$TMP/boxes" --output "$TMP/copies"
{ [ "$RC" = 0 ] && [ "$(stat -c %u:%a "$TMP"/copies/*.box)" = $V:600 ]; } ||
  fail "a copy is whose the box is: $(cat "$TMP/out")"
rm "$TMP"/boxes/*.box
chmod 711 "$TMP/copies"
run recover "$TMP/copies" --output "$TMP/parts2"
[ "$(zcat "$TMP"/parts2/*.gz | grep -c '"coll_perf"')" = 20 ] || fail "from a copy: $RC $(cat "$TMP/out")"
forge "$TMP/victim/x.box" uid=$V ops=5 dir="$TMP/victim"
run hang "$TMP/victim" --stuck-after 1
{ [ "$RC" = 3 ] && grep -q '^HANG' "$TMP/out"; } ||
  fail "root's hang over a user's boxes: $RC $(cat "$TMP/out")"
# In a folder of somebody else's root does what he may do.
fresh
mine dir="$TMP/mine" file=x
chown $V "$TMP"/boxes/*.box
run snapshot --box-dir "$TMP/boxes" --output "$TMP/mine"
[ -z "$(ls "$TMP/mine")" ] || fail "a copy of the victim's box in the attacker's folder"
run recover --box-dir "$TMP/boxes" --output "$TMP/mine"
[ -z "$(ls "$TMP/mine")" ] || fail "a part of the victim's box in the attacker's folder"

# Memory and time.
costs() { # NAME SECONDS MB COMMAND...: ends by itself within that
  local name=$1 s=$2 mb=$3
  shift 3
  python3 - "$s" "$mb" "$@" >"$TMP/cost" 2>&1 <<'P' && echo "ok   $name: $(tail -n 1 "$TMP/cost")" || fail "$name: $(tail -n 2 "$TMP/cost")"
import resource, subprocess, sys, time
limit, mb = float(sys.argv[1]), int(sys.argv[2])
t = time.monotonic()
p = subprocess.run(sys.argv[3:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   stdin=subprocess.DEVNULL, timeout=limit)
rss = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
print("%.2f s, %d MB" % (time.monotonic() - t, rss))
assert p.returncode in (0, 1, 2) and rss < mb, (p.returncode, rss)
P
}
fresh
mine holes=$((2 << 18)) dir="$TMP/mine" file=x
costs "a sparse box of 2 GiB, recover" 60 300 "$I" recover --box-dir "$TMP/boxes"
costs "and snapshot" 60 300 "$I" snapshot --box-dir "$TMP/boxes" --output "$TMP/copies"
[ "$(stat -c %s "$TMP"/copies/*.box)" -lt 2000000 ] || fail "its copy: $(ls -ls "$TMP/copies")"
fresh
mine ops=100000 dir="$TMP/mine" file=x
costs "100,000 forged slots, recover" 60 400 "$I" recover --box-dir "$TMP/boxes"
fresh
mine slot_bytes=16 dir="$TMP/mine" file=x
run recover --box-dir "$TMP/boxes"
grep -q 'damaged' "$TMP/out" || fail "slots of 16 bytes: $(cat "$TMP/out")"
fresh
mine dir="$TMP/mine" file=x-pid1-1.jsonl.gz start_ns=5
python3 - "$TMP/mine/x-pid1-1.jsonl" <<'P'
import sys
sys.path.insert(0, "test/lib")
import logs
about, meta = logs.header("0x%x", 0, 2, 1), logs.metadata(1, "h", 1, git_rev="g", producer="nccl-inspector-c t")
comm = logs.template(logs.line(about, meta, "comm", {"hash": "0x%x", "rank": 0, "n_ranks": 2, "nnodes": 1, "init_ns": "%d"}))
with open(sys.argv[1], "w") as f:
    f.write(logs.template(logs.line(about, meta, "process", {"start_ns": 5, "settings": {}})) % 0)
    for i in range(160000):
        h = i * 7919 + 1
        f.write(comm % (h, h, i + 1))
P
chown $A "$TMP/mine/x-pid1-1.jsonl"
costs "a log with 160,000 communicators, recover" 60 800 "$I" recover --box-dir "$TMP/boxes"
fresh
mine dir="$TMP/mine" file=x
echo '{}' >"$TMP/mine/other-pid7-1.jsonl" # with logs, boxes of a newer layout are looked at twice
setpriv --reuid $A --regid $A --clear-groups bash -c 'b=$(ls "$1"/*.box); cp "$b" "$1/x"; mkfifo "$1/p"; for i in $(seq 4000); do ln -f "$1/p" "$1/q"; mv -f "$1/q" "$b"; cp "$1/x" "$1/y"; mv -f "$1/y" "$b"; done' \
  - "$TMP/boxes" 2>/dev/null &
for _ in $(seq 12); do
  timeout 20 "$I" recover "$TMP/mine" --box-dir "$TMP/boxes" >"$TMP/out" 2>&1 </dev/null
  [ $? != 124 ] || { fail "a box swapped for a pipe holds recover"; break; }
done
kill %% 2>/dev/null
wait 2>/dev/null
finish

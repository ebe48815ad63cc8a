#!/usr/bin/env bash
# The Slurm kit with real accounting: slurmdbd and MariaDB. The verdict of a cancelled job is its
# AdminComment, as sacct shows it;
# a comment of somebody else's stays.
for f in slurmdbd mariadbd mariadb-install-db; do
  PATH=$PATH:/usr/sbin command -v $f >/dev/null || skip "no $f: apt-get install slurmdbd mariadb-server"
done
. "$(dirname "$0")/../lib/slurm.sh"
mkdir "$TMP/db" "$TMP/user" "$TMP/kit" "$TMP/bin"
chown mysql "$TMP/db"
chown nobody "$TMP/user"
ports=$(free_ports 2)
mariadb-install-db --no-defaults --user=mysql --datadir="$TMP/db" --auth-root-authentication-method=normal \
  >"$TMP/install" 2>&1
mariadbd --no-defaults --user=mysql --datadir="$TMP/db" --socket="$TMP/db/s" --port=$((ports + 1)) \
  --bind-address=127.0.0.1 \
  --pid-file="$TMP/db/pid" --innodb-buffer-pool-size=64M >"$TMP/mariadb.log" 2>&1 &
DAEMONS+=($!)
sql() { mariadb --no-defaults -S "$TMP/db/s" -e "$1"; }
wait_for 120 sql 'select 1' || { echo "MariaDB does not begin"; tail "$TMP/mariadb.log"; exit 1; }
sql "create database slurm_acct_db; create user slurm@'%' identified by 'x'; grant all on slurm_acct_db.* to slurm@'%';
  create user slurm@localhost identified by 'x'; grant all on slurm_acct_db.* to slurm@localhost;"
cat >"$TMP/slurmdbd.conf" <<C
AuthType=auth/none
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$ports
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$((ports + 1))
StorageUser=slurm
StoragePass=x
PidFile=$TMP/dbd.pid
LogFile=$TMP/dbd.log
C
chmod 600 "$TMP/slurmdbd.conf"
account="AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$ports"
printf '%s\n' ClusterName=test AuthType=auth/none "SlurmctldHost=$(hostname -s)" "$account" >"$TMP/slurm.conf"
export SLURM_CONF=$TMP/slurm.conf
slurmdbd -D >"$TMP/dbd.out" 2>&1 &
DAEMONS+=($!)
wait_for 60 timeout 10 sacctmgr -i add cluster test ||
  { echo "slurmdbd does not begin"; tail "$TMP/dbd.out"; exit 1; }

cp packaging/slurm/* "$TMP/kit/"
cp "$BUILD/nccl-inspector" "$BUILD/nccl-sim" "$BUILD/libnccl-profiler-inspector.so" \
  test/scenarios/hang_late.scn "$TMP/bin/"
printf '%s\n' "NI_PLUGIN=$TMP/bin/libnccl-profiler-inspector.so" "NI_COMMAND=$TMP/bin/nccl-inspector" \
  "NI_DUMP_DIR=$TMP/user/logs-%j" \
  "NI_LOG=$TMP/epilog.log" >"$TMP/kit/nccl-inspector.conf"
slurm_begin 1 TaskProlog="$TMP/kit/task_prolog.sh" Epilog="$TMP/kit/epilog.sh" "$account"
comment() { timeout 10 sacct -X -n -P -j "$1" -o AdminComment; }
has() { comment "$1" | grep -qiE -- "$2"; }
one() { batch --nodes=1 --export=ALL,NCCL_INSPECTOR_ENABLE=1 <<<"#!/bin/bash
srun $TMP/bin/nccl-sim --procs --quiet $1"; }
running() { [ "$(find "$TMP/user/logs-$1" -name '*.jsonl.gz' -size +0 | wc -l)" = 4 ]; }

one "--job 1x2 --iterations 3"
wait_for 120 has "$JOB" '^nccl-inspector: complete$' ||
  fail "ended: '$(comment "$JOB")'; $(tail -n 4 "$TMP/epilog.log")"
one "--scenario $TMP/bin/hang_late.scn"; killed=$JOB
one "--scenario $TMP/bin/hang_late.scn"; theirs=$JOB
wait_for 120 running "$killed" && wait_for 120 running "$theirs" || fail "the jobs do not begin"
sleep 3
timeout 10 scontrol update JobId="$theirs" AdminComment="see ticket 4711"
timeout 10 scancel "$killed" "$theirs"
wait_for 120 has "$killed" '^nccl-inspector: dead \(4 ranks.*incomplete: ' ||
  fail "cancelled: '$(comment "$killed")'; $(tail -n 4 "$TMP/epilog.log")"
wait_for 120 test -s "$TMP/user/logs-$theirs/nccl-inspector-verdict.txt" || fail "no verdict"
sleep 1
has "$theirs" '^see ticket 4711$' || fail "somebody else's comment: $(comment "$theirs")"
finish

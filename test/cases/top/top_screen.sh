#!/usr/bin/env bash
# `top` on a screen, in tmux: what stands where on 80x24 and 120x44, keys, resizing, colours, an agent that
# vanishes and comes back.
. "$(dirname "$0")/../../lib/top.sh"
need tmux
python3 test/lib/top_nodes.py "$TMP/web" 2 4 stuck
python3 test/lib/top_nodes.py "$TMP/many" 1 60
mv "$TMP/many/n0" "$TMP/web/many"
serve "$TMP/web"

SCREENS=0
screen() { tmux -S "$TMUX_SOCKET" capture-pane -p "$@"; }
has() { screen | grep -E -- "$1"; }
until_seen() { # WHAT PATTERN: until the screen has a line that fits
  wait_for 30 has "$2" || { fail "$1: no '$2' on the screen:"; screen; }
}
shown() { screen | awk '/^JOB/ {on = 1; next} on && /^7/ {printf "%s ", $2}'; }
are() { [ "$(shown)" = "$1" ]; }
until_ranks() { # WHAT RANKS
  wait_for 30 are "$2" || { fail "$1: ranks $(shown), not $2:"; screen; }
}
same() { screen | sed -nE '1s/^[0-9:]+ /NOW/; 1,11p' | diff "$TMP/want" - >"$TMP/differs"; }
keys() { tmux -S "$TMUX_SOCKET" send-keys "$@"; }
begin() { # COLUMNS LINES ENVIRONMENT NAMES OPTIONS...: `top` of these agents
  local agents=() name columns=$1 lines=$2 set=$3
  for name in $4; do agents+=("-a" "http://127.0.0.1:$PORT/$name"); done
  shift 4
  TMUX_SOCKET=$TMP/tmux$((SCREENS += 1))
  tmux -S "$TMUX_SOCKET" -f /dev/null new-session -d -x "$columns" -y "$lines" \
    "env $set '$INSPECTOR' top -d 100ms ${agents[*]} $*; echo \"ended with \$?\"; sleep 60"
}
end() { tmux -S "$TMUX_SOCKET" kill-server; }

begin 80 24 A=1 "n0 n1"
cat >"$TMP/want" <<'END'
NOW 2 nodes, 1 job, 8 ranks, 7 in flight, 7 stuck
job 77: AllReduce 900 of dp0 waits for rank 1, which has not called it
JOB RANK HOST GPU COMM FUNCTION  STATE     AGE OPS/s BUSBW LATE UTIL WAITS FOR
77     0 n0     0 dp0  AllReduce kernel 40.0 s     0     0 1.0%  90% r1, r7
77     1 n0     1 dp0  -         -           -     0     0 1.1%  91%
77     2 n0     2 dp0  AllReduce kernel 42.0 s     0     0 1.2%  92% r1, r7
77     3 n0     3 dp0  AllReduce kernel 43.0 s     0     0 1.3%  93% r1, r7
77     4 n1     0 dp0  AllReduce kernel 44.0 s     0     0 1.4%  90% r1, r7
77     5 n1     1 dp0  AllReduce kernel 45.0 s     0     0 1.5%  91% r1, r7
77     6 n1     2 dp0  AllReduce kernel 46.0 s     0     0 1.6%  92% r1, r7
77     7 n1     3 dp0  AllReduce kernel 47.0 s     0     0 1.7%  93%
END
wait_for 30 same || { fail "another screen of 80x24"; cat "$TMP/differs"; }
[ "$(screen | tail -n 1)" = "F1 Help  F4 Filter  F6 Sort: rank  n GPUs, NICs  Space Pause  + - 0.1s  F10 Quit" ] || fail "keys: $(screen | tail -n 1)"

# Red: stuck; yellow: waited for, a bar for 5 s or more, also where it is stuck elsewhere.
coloured() {
  [ "$(screen -e | grep -c $'\e\\[[0-9;]*7m\e\\[33m.*77     [17] ')" = 2 ] && screen -e |
    grep $'\e\\[[0-9;]*1m\e\\[31m'
}
wait_for 30 coloured || { fail "ranks 1 and 7 are not yellow, or nothing is red"; screen -e; }

# Wider: GPUs and NICs below, where there are 40 lines.
tmux -S "$TMUX_SOCKET" resize-window -x 120 -y 44
until_seen resize '^HOST NIC  RECEIVED'
for line in '^77     0 n0     0 dp0  AllReduce kernel 40.0 s     0     0 1.0%  90% 1980M r1, r7$' \
  '^n0     1  91% 1981M  641W  62C power,thermal$' \
  '^n1   cxi1     2.0G 3.0G  25G  12% 1.0%$'; do until_seen 120x44 "$line"; done
tmux -S "$TMUX_SOCKET" resize-window -x 40 -y 10
until_seen "40 columns" '^JOB RANK HOST FUNCTION'
tmux -S "$TMUX_SOCKET" resize-window -x 80 -y 24
until_seen "back to 80" '^77 +7 n1'

# Keys.
keys s
until_seen sort 'Sort: age'
until_ranks "by age" "1 7 6 5 4 3 2 0 "
keys F6
# all of it, in 80 columns
until_seen sort '^F1 Help F4 Filter F6 Sort: bandwidth n GPUs, NICs Space Pause [+] - 0.1s F10 Quit$'
keys s s
until_seen sort 'Sort: rank'
keys /
keys n1
until_seen filter '^Filter: n1_'
until_seen filter '4 of 8 with "n1"$'
until_ranks "filtered" "4 5 6 7 "
keys BSpace 0 Enter
until_seen "filter kept" '4 of 8 with "n0"$'
until_ranks "filtered anew" "0 1 2 3 "
keys F4 Escape
until_seen "filter ends" '^77 +7 n1'
keys n
until_seen GPUs '^HOST GPU UTIL'
keys n
until_seen NICs '^HOST NIC'
keys n
until_seen ranks '^JOB RANK'
keys h
until_seen help 'Any key goes back'
until_seen "help of LATE" '^LATE +share of the time for which the middle rank of its node waited for it$'
keys x
until_seen "help ends" '^JOB RANK'
keys -
until_seen slower ' 0.2s '
keys +
until_seen faster ' 0.1s '
# Paused: a new value is not shown, however often it is drawn.
keys Space
until_seen pause PAUSED
sed -i 's/"n_ranks"/"x"/; s/AllReduce/AllGather/g' "$TMP/web/n0"
for _ in 1 2 3; do
  keys h
  until_seen "help, paused" 'Any key goes back'
  keys x
  until_seen "drawn, paused" 'PAUSED'
done
until_seen paused '^77 +0 n0 .*AllReduce'
keys p
until_seen "goes on" '^77 +0 n0 .*AllGather'

# An agent that does not answer: its rows stay, dim, and nobody waits for them.
touch "$TMP/web/n1.close"
until_seen vanished '^node n1: no answer for [0-9]+ s '
until_seen "its rows" '^77 +6 n1 '
until_seen "who waits now" '^77 +0 n0 .* r1$'
rm "$TMP/web/n1.close"
until_seen "back again" '^77 +0 n0 .* r1, r7$'
keys q
until_seen quit 'ended with 0'
end

# Scrolling; without colours; a signal ends it in order.
begin 80 24 NO_COLOR=1 many
until_seen many '^77 +20 n0'
until_ranks "24 lines" "$(seq -s ' ' 0 20) "
keys Down Down
until_seen down '^77 +22 n0'
until_ranks down "$(seq -s ' ' 2 22) "
keys PageDown
until_seen "page down" '^77 +43 n0'
keys End
until_seen end '^77 +59 n0'
until_ranks end "$(seq -s ' ' 39 59) "
keys PageUp Up
until_seen "page up" '^77 +17 n0'
keys Home
until_seen home '^77 +0 n0'
! grep -q $'\e\\[[0-9;]*3[0-7]m' < <(screen -e) || fail "colours with NO_COLOR"
kill -TERM "$(pgrep -P "$(tmux -S "$TMUX_SOCKET" list-panes -F '#{pane_pid}')")"
until_seen SIGTERM 'ended with 0'
end
# Nodes without GPUs or NICs, and a filter that nothing fits: said in words where a table would stand.
sed -E 's/"(gpus|nics)": \[.*/"gpus":[],"nics":[]}/' "$TMP/web/n0" >"$TMP/web/bare"
begin 80 24 A=1 bare
until_seen bare '^77 +3 n0'
keys n
until_seen "no GPUs" '^No GPU: NVML [(]libnvidia-ml.so.1[)] tells of none on the nodes that answer. n shows$'
keys n
until_seen "no NICs" '^No NIC: no InfiniBand, Slingshot or Ethernet device is seen on the nodes that$'
keys n
until_seen ranks '^JOB RANK'
keys / xyz Enter
until_seen "fits nothing" '^No rank has "xyz" in job, host, communicator or function. Esc shows all.$'
keys q
until_seen quit 'ended with 0'
end
# Columns of which nothing is known are not there; long names and sentences are cut, which is seen. Nobody has
# answered: that is all.
sed -E 's/"gpu": [0-9]+/"gpu": null/g; s/"dp0"/"a_long_name_of_a_communicator"/g; s/"late_share": [0-9.]+/"late_share": null/g
  s/"hang": "[^"]*"/"hang": "'"$(printf 'word %.0s' $(seq 80))"'"/' "$TMP/web/n0" >"$TMP/web/long"
begin 80 24 A=1 long
until_seen heads '^JOB RANK HOST COMM             FUNCTION  STATE     AGE OPS/s BUSBW WAITS FOR$'
until_seen "long name" '^77 +0 n0   a_long_name_of_~ AllGather '
[ "$(screen | grep -cE '^(job 77: )?word .* word( [.]{3})?$')" = 3 ] && has 'word [.]{3}$' ||
  fail "a long sentence: $(screen)"
end
touch "$TMP/web/slow.hang"
begin 80 24 A=1 slow
until_seen "first" '^looking [.]{3}$'
until_seen "no answer" '^node .* no answer for [0-9]+ s'
! has 'nothing to show|looking' || fail "it says what it cannot know"
end
begin 80 24 TERM=nonsense many
until_seen "no such terminal" 'the terminal cannot be used: use --once'
until_seen "no such terminal" 'ended with 1'
end
finish

#!/usr/bin/env bash
# The walls between the rooms (scripts/rooms): no file includes a header of a room above its own, no object
# calls into one, and no objects call each other in a circle. Says each edge that goes up with a file or a
# symbol that makes it, each circle, and at the end "N upward, N circles". Exit 0 when both are 0.
#   BUILD=build scripts/check_rooms.sh      the objects of that build; without a build the includes alone
set -euo pipefail
cd "$(dirname "$0")/.."
BUILD=${BUILD:-build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

git ls-files -co --exclude-standard -- 'include/*.h' 'format/*.[ch]' 'format/*.def' 'plugin/*.[ch]' \
  'exporter/*.[ch]' 'exporter/*.def' 'exporter/*.cc' |
  while read -r f; do [ -f "$f" ] && echo "$f"; done >"$tmp/files"

# "FILE includes WHAT" with WHAT as a path from the root: beside the file, in include/, or from the root.
xargs grep -HoE '^ *# *include "[^"]+"' <"$tmp/files" | sed -E 's/:[^"]*"/ /; s/"$//' |
  awk -v files="$tmp/files" 'BEGIN {while ((getline f <files) > 0) there[f] = 1}
    {
      at = $1; sub(/[^\/]*$/, "", at)
      to = ($2 in there) ? $2 : ((at $2) in there) ? at $2 : (("include/" $2) in there) ? "include/" $2 : ""
      if (to == "") {print "?", $1, $2; next}
      print $1, to, "include"
    }' >"$tmp/edges"

# "OBJECT OBJECT symbol": who uses what another one defines.
objects=()
while read -r f; do
  o=$BUILD/obj/${f%.*}.o
  case $f in *.c | *.cc) [ -f "$o" ] && objects+=("$o") ;; esac
done <"$tmp/files"
: >"$tmp/calls"
if [ ${#objects[@]} -gt 0 ]; then
  nm -A --no-demangle "${objects[@]}" | sed "s,^$BUILD/obj/,," | awk '
    {split($1, p, ".o:"); kind = $(NF - 1); name = $NF}
    kind ~ /^[TDBRVW]$/ && name ~ /^ni_|^ncclProfiler/ {half = p[1] ~ /^plugin/ ? "p" : p[1] ~ /^exporter/ ? "e" : "f"; where[half, name] = p[1]}
    kind == "U" {n++; from[n] = p[1]; uses[n] = name}
    END {
      for (i = 1; i <= n; i++) {
        half = from[i] ~ /^plugin/ ? "p" : from[i] ~ /^exporter/ ? "e" : "f"
        to = ((half, uses[i]) in where) ? where[half, uses[i]] : where["f", uses[i]]
        if (to != "" && to != from[i]) print from[i], to, uses[i]
      }
    }' | sort -u >"$tmp/calls"
else
  echo "check_rooms: $BUILD holds no objects: includes alone (make all first)"
fi
cat "$tmp/calls" >>"$tmp/edges"

# Each file belongs to the room with the longest path that it lies in; a room that is not in the list is a
# finding of its own.
awk '
  FNR == NR {if ($0 !~ /^#/) {chains++; for (i = 1; i <= NF; i++) {rank[chains, $i] = i; room[$i] = 1}} next}
  function room_of(f,   r, best) {
    for (r in room) if (index(f, r "/") == 1 && length(r) > length(best)) best = r
    return best
  }
  $1 == "?" {print "FAIL  " $2 " includes " $3 ", which is not there"; bad++; next}
  {
    a = room_of($1); b = room_of($2)
    if (a == "" || b == "") {print "FAIL  " (a == "" ? $1 : $2) " lies in no room of scripts/rooms"; bad++; next}
    if (a == b) next
    fine = 0
    for (c = 1; c <= chains; c++) if ((c, a) in rank && (c, b) in rank && rank[c, b] < rank[c, a]) fine = 1
    if (fine || seen[$1, $2]++) next
    bad++
    print "UP    " $1 " -> " $2 ($3 == "include" ? "" : "  (" $3 ")")
  }
  END {print bad + 0 >"/dev/stderr"}' scripts/rooms "$tmp/edges" 2>"$tmp/upward" | sort
upward=$(cat "$tmp/upward")

# tsort names the members of each circle on lines of their own, a circle once for each edge that it had to
# drop.
awk '{print $1, $2}' "$tmp/calls" | { tsort 2>&1 >/dev/null || true; } | sed 's/^tsort: //' | awk '
  /input contains a loop/ {if (n++) print line; line = "CIRCLE"; next}
  {line = line " " $0}
  END {if (n) print line}' | sort -u | tee "$tmp/circles"
circles=$(wc -l <"$tmp/circles")
echo "$upward upward, $circles circles"
[ "$upward" = 0 ] && [ "$circles" = 0 ]

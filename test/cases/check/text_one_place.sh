#!/usr/bin/env bash
# Foreign text reaches terminals, logs and cells through one room (exporter/base/text/safe_text.h): no other
# call writes any.
. "$(dirname "$0")/../../lib/case.sh"
python3 test/lib/text_calls.py . || fail "foreign text goes another way"

# It sees what it is there for: each line is one fault, each line behind it is none.
planted() { # FILE FAULT FINE
  local n
  mkdir -p "$TMP/exporter/$(dirname "$1")"
  printf 'void f(void) {\n  %s\n}\n' "$2" >"$TMP/exporter/$1"
  n=$(python3 test/lib/text_calls.py "$TMP" | grep -c "^exporter/$1:2: ") || true
  [ "$n" = 1 ] || fail "$n faults seen in: $2"
  printf 'void f(void) {\n  %s\n}\n' "$3" >"$TMP/exporter/$1"
  n=$(python3 test/lib/text_calls.py "$TMP" | grep -c "^exporter/$1:2: ") || true
  [ "$n" = 0 ] || fail "a fault is seen in: $3"
}
planted cmds/trace_print.c 'fprintf(stderr, "%s\n", path);' \
  'ni_say(stderr, "%s\n", path); /* printf("%s", path); */'
planted cmds/trace_print.c 'printf("%s", path);' 'snprintf(out, 9, "%s", path);'
planted cmds/hang/say.c 'fputs(p->host, f);' 'fputs(n ? " (" : ", ", f);'
planted cmds/hang/say.c 'fputs(n ? p->host : "", f);' 'ni_put_text(f, p->host);'
planted cmds/pools.c 'for (; *p; p++) putc(*p, f);' "putc('\\\\n', f);"
planted cmds/pools.c 'perror(path);' 'ni_say(stderr, "%s: %s\n", path, strerror(errno));'
planted cmds/pools.c 'ni_say(f, "%s%s", text, last ? "\n" : "");' 'ni_say(f, last ? "%s\n" : "%s", text);'
planted cmds/doctor/child.c 'dprintf(2, "%s", path);' 'dprintf(fd, "%s", path);'
planted output/tables/out_tables.c 'fprintf(f, "%s,", s->host[i].name);' 'ni_csv_text(f, s->host[i].name);'
planted output/tables/out_tables.c 'fputs(g->func, f);' \
  'fprintf(f, "%s,%s", ni_comm_type_names[g->type], s->cell[i].human);'
planted output/plot/figure_cells.c 'fprintf(f, "set title %s", g->func);' 'ni_fig_quoted(f, g->func);'
finish

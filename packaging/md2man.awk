# A page of docs/ as a man page: awk -v name=N -v section=7 -v purpose=TEXT -v version=V [-v only=HEADS] -f md2man.awk PAGE.md
# It knows what our pages use: headings, paragraphs, lists, tables (the first cell of a row, the others indented beneath), code,
# links (their text). only: the headings of the second level to take, "|" before and behind each; what stands before the first
# one is taken, too.
function esc(t) { # what roff would take for its own
  gsub(/\\/, "\\e", t)
  gsub(/`/, "\\(ga", t)
  gsub(/'/, "\\(aq", t)
  gsub(/~/, "\\(ti", t)
  gsub(/\^/, "\\(ha", t)
  return t
}
function code(t) { t = esc(t); gsub(/-/, "\\-", t); return t }
function words(t,   n, part, i, out, text) {
  while (match(t, /!?\[[^\]]*\]\([^)]*\)/)) { # links first: their text may hold code
    text = substr(t, RSTART, RLENGTH)
    sub(/^!?\[/, "", text)
    sub(/\]\([^)]*\)$/, "", text)
    t = substr(t, 1, RSTART - 1) text substr(t, RSTART + RLENGTH)
  }
  n = split(t, part, "`")
  for (i = 1; i <= n; i++) out = out (i % 2 ? esc(part[i]) : "\\fB" code(part[i]) "\\fR")
  while (match(out, /\*\*[^*]+\*\*/)) out = substr(out, 1, RSTART - 1) "\\fB" substr(out, RSTART + 2, RLENGTH - 4) "\\fR" substr(out, RSTART + RLENGTH)
  return out ~ /^[.]/ ? "\\&" out : out
}
function end_text() { # what was gathered goes out as one line
  if (text != "") print words(text)
  text = ""
}
function verbatim(on) {
  if (on == in_code) return
  end_text()
  print on ? (began ? "" : ".PP\n") ".RS 4\n.nf" : ".fi\n.RE"
  began = 0
  in_code = on
}
function row(line,   n, cell, i, rest) {
  gsub(/\\\|/, "\001", line)
  n = split(line, cell, "|")
  for (i = 1; i <= n; i++) {
    gsub(/^ +| +$/, "", cell[i])
    gsub(/\001/, "|", cell[i])
  }
  for (i = 3; i < n; i++) if (cell[i] != "") rest = rest (rest == "" ? "" : "; ") cell[i]
  print ".TP"
  began = 0
  print "\\fB" words(cell[2]) "\\fR"
  print rest == "" ? "\\&" : words(rest)
}
BEGIN {
  printf ".TH \"%s\" %d \"\" \"NCCL Inspector %s\" \"NCCL Inspector\"\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n", name, section, version, code(name), esc(purpose)
  taken = began = 1
  indent = ""
}
/^```/ { if (taken && !fenced) verbatim(1); fenced = !fenced; if (taken && !fenced) verbatim(0); next }
fenced { if (taken) { line = code($0); print line ~ /^[.]/ ? "\\&" line : line }; next }
/^<!--/ { next }
/^## / {
  end_text()
  verbatim(0)
  head = substr($0, 4)
  sub(/^[0-9]+[a-z]?\. /, "", head)
  taken = only == "" || index(only, "|" head "|")
  if (taken) print ".SH \"" toupper(words(head)) "\""
  began = 1
  next
}
!taken { next }
/^# / || /^!\[/ { next }
/^###+ / { end_text(); sub(/^#+ /, ""); print ".SS \"" words($0) "\""; began = 1; next }
/^$/ { end_text(); if (in_code) print ""; fresh = 1; in_list = 0; next }
/^    / && (in_code || fresh && !in_list) { verbatim(1); line = code(substr($0, 5)); print line ~ /^[.]/ ? "\\&" line : line; next }
{ if (in_code) verbatim(0) }
/^\|[-| :]*\|$/ { next }
/^\|/ { end_text(); if (!in_table) { in_table = 1; next } row($0); next } # the first row names the columns
{ in_table = 0 }
/^ *- / { end_text(); began = 0; match($0, /^ */); print ".IP " (RLENGTH ? "\\-" : "\\(bu") " " 2 + RLENGTH; sub(/^ *- /, ""); text = $0; in_list = 1; fresh = 0; next }
/^[0-9]+\. / { end_text(); began = 0; print ".IP " $1 " 4"; sub(/^[0-9]+\. /, ""); text = $0; in_list = 1; fresh = 0; next }
{ if (fresh && !in_list && !began) print ".PP"; fresh = began = 0; sub(/^ +/, ""); text = text (text == "" ? "" : " ") $0 }
END { end_text(); verbatim(0); print ".SH SEE ALSO\n.BR nccl-inspector (1),\n.BR nccl-inspector-plugin (7),\n.BR nccl-inspector-log-format (7)" }

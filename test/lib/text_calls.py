"""Calls in C sources that could put foreign text on a terminal, into a log or into a cell as it is
(exporter/base/text/safe_text.h).

  text_calls.py ROOT      looks through ROOT/exporter; says each such place; exit status 1 when there is one
"""
import os
import re
import sys

# Rooms that write files for machines, each with a writer of texts of its own; everybody else says it with
# ni_say().
RAW = {"base/text/json_write.c": "ni_json_text", "output/tables/out_tables.c": "ni_csv_text",
       "output/report/page_file.c": "JSON", "output/tables/beside_table.c": "ni_csv_text",
       "output/plot/plot.c": "ni_fig_quoted", "output/plot/figure_base.c": "ni_fig_quoted",
       "output/plot/figure_cells.c": "ni_fig_quoted", "output/plot/figure_scatter.c": "ni_fig_quoted",
       "session/stat/plot.c": "ni_fig_quoted", "session/entry.c": "JSON", "session/folder.cc": "JSON",
       "session/recover.c": "JSON", "head/cli/prometheus.c": "JSON", "head/api.c": "JSON",
       "head/history.c": "JSON", "output/tables/series_table.c": "ni_csv_text",
       "cmds/recover/recover_box.c": "lines of a log", "base/text/csv_write.c": "the room itself",
       "output/metrics/text.c": "labels, safe since metrics.c",
       "output/counters/csv.c": "ni_csv_text", "base/text/safe_text.c": "the room itself"}
# In rooms that write raw: what comes out of logs. (A figure's own path is made of words that are safe.)
FOREIGN = r"(\.|->)(name|func|id|exe|hostname|host|algo|proto|producers|formats|text|where|trouble|of|version|input|unit|about|link)\b(?!\[)"
OURS = r"_names?\[|(cell|comm)\[[^]]*\]\.(human|id)\b|->id\b|fig->path|c->id\b"
WRITES = r"\b(v?f?printf|v?dprintf|fputs|puts|perror|warnx?|errx?|error|psignal|fputc|putc|putchar|fwrite|ni_v?say)\("


def without_comments(text):
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*',
                  lambda m: m.group() if m.group()[0] in "\"'" else re.sub(r"[^\n]", " ", m.group()), text,
                  flags=re.S)


def arguments(text, at):
    """Those of the call whose parenthesis opens before at."""
    depth, start, out = 1, at, []
    for m in re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[()\[\]{},]').finditer(text, at):
        c = m.group()
        depth += (c in "([{") - (c in ")]}")
        if depth == 0 or (depth == 1 and c == ","):
            out.append(text[start:m.start()].strip())
            start = m.end()
        if depth == 0:
            return out
    return out


def bare(argument):
    return re.sub(r'"(?:\\.|[^"\\])*"', '""', argument)


def literal(argument):
    """Text that stands here: one or more literals, or a choice between such."""
    branches = re.split(r"[?:]", re.sub(r"'(?:\\.|[^'\\])*'", '""', bare(argument)))
    if len(branches) > 1:  # c ? a : d ? b : e
        branches = [x for i, x in enumerate(branches[1:], 1) if i % 2 or i == len(branches) - 1]
    return all(re.fullmatch(r'(\s*""|\s*PRI\w+)+\s*', x) for x in branches)


def fault(name, call, args):
    if call in ("ni_say", "ni_vsay"):
        own = [a for a in args[2:] if re.search(r'"[^"]*\\[nrtbaef0-7x]', a)]
        return own and f"a control character in an argument comes out as '?': {own[0]}"
    if call in ("perror", "puts", "warn", "warnx", "err", "errx", "error", "psignal"):
        return "ni_say() says it"
    if call in ("dprintf", "vdprintf"):  # between a process of ours and its child
        return re.match(r"[12]$|STD", args[0]) and "ni_say() says it"
    if name in RAW:
        foreign = call != "fwrite" and re.search(FOREIGN, re.sub(OURS, "", bare(",".join(args))))
        return foreign and f"text from outside: {RAW[name]} writes it"
    if call in ("fputs", "fputc", "putc", "putchar"):
        return not literal(args[0]) and "ni_put_text() writes text that is not ours"
    return "ni_say() says it"


def main(root):
    found = calls = 0
    for folder, _, names in os.walk(os.path.join(root, "exporter")):
        for path in (os.path.join(folder, n) for n in sorted(names) if n.endswith((".c", ".h", ".cc"))):
            name = os.path.relpath(path, os.path.join(root, "exporter"))
            text = without_comments(open(path).read())
            for m in re.finditer(WRITES, text):
                before = text[text.rfind("\n", 0, m.start()) + 1:m.start()]
                if re.match(r"(static |int |void )|.*(__attribute__|format)\(", before):
                    continue
                calls += 1
                args = arguments(text, m.end())
                if args == [""]: # somebody else's function of that name
                    continue
                what = fault(name, m.group(1), args)
                if what:
                    line = text.count("\n", 0, m.start()) + 1
                    print(f"exporter/{name}:{line}: {m.group(1)}({', '.join(args)[:90]}): {what}")
                    found += 1
    print(f"{calls} calls, {found} faults")
    return found > 0 or calls < 100


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

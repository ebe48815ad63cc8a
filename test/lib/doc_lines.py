"""The lines of docs/format.md with each wrapped example in one: what goes on of it is indented."""


def doc_lines(path):
    out, code = [], False
    for line in open(path).read().split("\n"):
        if line.startswith("```"):
            code = not code
        if code and line.startswith("  "):
            out[-1] += line.strip()
        else:
            out.append(line)
    return out

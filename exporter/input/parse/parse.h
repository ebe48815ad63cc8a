/*
 * The parser turns a line into a struct ni_line, tagged by kind: an operation (ours or NVIDIA's, v4.0 to
 * v4.4), or one of the lines that describe the run. Keys may come in any order; unknown keys are passed over
 * (after their JSON was verified) and counted; a known key twice, a wrong type or a value out of its range
 * rejects the line with a reason and the key. Nothing a line can contain crashes the parser.
 *
 * Lines of v4.3 and v4.4 come without header and metadata after a marker (NI_LINE_DUMP_STATS): has_header is
 * false and the caller supplies the context of the last marker of the same file.
 *
 * Threads: a parser belongs to one thread; different parsers are independent. Ownership: ni_parser_free()
 * frees everything; every string in a struct ni_line is owned by the parser and valid until its next
 * ni_parse_line(). Failure: reasons (enum ni_reject) for bad lines; -ENOMEM for the machine. Not promised:
 * numbers of operations without a stated limit are kept as they are, a plausible wrong value is not found
 * here.
 */
#ifndef NI_PARSE_H
#define NI_PARSE_H

#include "format/line.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that must be readable after a line for it to be parsed where it lies. */
#define NI_PARSE_PADDING 64

struct ni_parser;

/* 0 or -ENOMEM. */
int ni_parser_new(struct ni_parser **out);
void ni_parser_free(struct ni_parser *p);

/*
 * Parses text[0..len), one line without its line feed. room is the number of bytes that may be read (and, for
 * the duration of the call, written: every byte is as it was when the call returns) from text on; with less
 * than len + NI_PARSE_PADDING the line is copied first. NI_OK: *out is complete. Else the reason;
 * out->bad_key may name a key.
 */
enum ni_reject ni_parse_line(struct ni_parser *p, char *text, size_t len, size_t room, struct ni_line *out);

#ifdef __cplusplus
}
#endif

#endif

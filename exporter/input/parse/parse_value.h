/*
 * Values of a line that need simdjson to be read: strings, keys, lists of names; and whatever nobody reads,
 * which is verified (simdjson's on-demand walk alone would not). parse_simdjson.cc walks the objects they are
 * in; of sweeps only ni_json_verify() is asked (netprof/sweep.cc).
 *
 * t is a value's text, ni_json_token(v). Names are strings of the line with a NUL, in a buffer that has room
 * for all of its text (ni_json_grow), as no name is longer than its text; they are valid until it is begun
 * again.
 */
#ifndef NI_PARSE_VALUE_H
#define NI_PARSE_VALUE_H

#if !__has_include(<simdjson.h>)
#error "simdjson.h not found: install libsimdjson-dev (the exporter's JSON parser)"
#endif
#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>

#include "format/line.h"

namespace od = simdjson::ondemand;

struct ni_json_names {
  char *text = nullptr;
  size_t size = 0, used = 0;
};

/* Numbers of all lists of a line. */
struct ni_json_numbers_room {
  int64_t *number = nullptr; /* the parser frees it */
  size_t size = 0, used = 0;
  size_t most = 0; /* as many as the line's text can hold */
};

/* Room for so many bytes; what was in the buffer is gone. */
bool ni_json_grow(char *&buffer, size_t &size, size_t need);

ni_reject ni_json_reason(simdjson::error_code e);
/* The reason for a value that should be an object or an array and is not. */
inline ni_reject ni_json_wrong_type(simdjson::error_code e) {
  return e == simdjson::INCORRECT_TYPE ? NI_REJ_BAD_TYPE : ni_json_reason(e);
}

inline const char *ni_json_token(od::value &v) { return v.raw_json_token().data(); }

/*
 * Steps over a string that was read from its text. Left to the walk, simdjson 3.0 would take a string that a
 * colon follows for a key, and let `"a":"b":1` pass.
 */
inline bool ni_json_step_over(od::value &v) { return v.get_raw_json_string().error() == simdjson::SUCCESS; }

/* Is it JSON, nested no deeper than what a log may hold? depth: of v itself. */
ni_reject ni_json_verify(od::value v, unsigned depth);
/* The same of a whole line, in [text, text + room). */
bool ni_json_is_line(od::parser &json, char *text, size_t len, size_t room);

/* What ni_text_decimal() does not read. has is false for the spellings of "no value". */
ni_reject ni_json_f64(od::value &v, const char *t, double &out, bool &has);
ni_reject ni_json_string(ni_json_names &names, od::value &v, const char *t, const char *&out);
ni_reject ni_json_key(ni_json_names &names, od::field &f, const char *raw, const char *&out);
ni_reject ni_json_by(ni_json_names &names, od::value &v, ni_by &by);
ni_reject ni_json_pairs(ni_json_names &names, od::value &v, ni_pairs &pairs);
/* A list of numbers; null is NI_NO_NUMBER. */
ni_reject ni_json_numbers(ni_json_numbers_room &room, od::value &v, ni_numbers &numbers);
/* {"<lower edge in ns>":count,...}; an edge of another bucket width counts where it lies. */
ni_reject ni_json_hist(od::value &v, uint64_t *hist);

#endif

/*
 * `session ...`: asks the head over HTTP, prints what it says; recover and export read a head's folder
 * without it (docs/cluster.md). Main thread.
 */
#ifndef NI_SESSION_CLI_H
#define NI_SESSION_CLI_H

#include "exporter/cmds/head.h"
#include "exporter/http/fetch.h"

/* argv[0]: for messages. The exit code. */
int ni_session_main(enum ni_session_word which, int argc, char **argv);

/* What the head said, for free(); error: why it did not do it, "": it did. */
struct ni_head_said {
  char *text;
  size_t bytes;
  char error[512];
};
/* The token of o, "": none. NULL, or what is wrong with how it wants to ask. */
const char *ni_head_trust(const struct ni_session_options *o, char token[NI_FETCH_TOKEN]);
/*
 * Asks the head of o (head, token_file, ca, cert, key) for a path; body NULL: GET, else POST of that JSON.
 * True: it did what was asked.
 */
bool ni_head_ask(const struct ni_session_options *o, const char *path, const char *body,
                 struct ni_head_said *said);
/* The same, POST of {"name":NAME}, or null. */
bool ni_head_ask_name(const struct ni_session_options *o, const char *path, const char *name,
                      struct ni_head_said *said);
/* The text, number or truth there: "output_file". Into out, safe to print; "": there is none. Returns out. */
const char *ni_head_said_text(const struct ni_head_said *said, const char *key, char *out, size_t cap);

#endif

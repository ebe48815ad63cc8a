/*
 * The words of the commands that look at running jobs, `agent` and `top` (head.h has others). They are a
 * program of their own, nccl-inspector-live, which needs libraries (HTTP, ncurses) that nobody else should
 * have to load: nccl-inspector becomes it, and both have the words from here. Main thread.
 */
#ifndef NI_CMDS_LIVE_H
#define NI_CMDS_LIVE_H

#include "exporter/cli/command.h"

#define NI_LIVE_PROGRAM "nccl-inspector-live" /* beside nccl-inspector */
#define NI_AGENT_LISTEN "127.0.0.1:9777"

/*
 * Words of a command line of its own, one an option: --on-hang PROGRAM --on-hang ARGUMENT. NULL behind the
 * last.
 */
struct ni_argv {
  char **word;
  size_t n, cap;
};
int ni_argv_add(struct ni_argv *a, const char *word); /* a copy; 0 or -ENOMEM */
void ni_argv_free(struct ni_argv *a);

/*
 * Of `agent`, from the command line or the settings file. Texts are the caller's of ni_words_parse(), which
 * keeps argv.
 */
struct ni_agent_options {
  const char *config;        /* settings file; NULL: none */
  struct ni_inputs log_dirs; /* beside what the boxes name */
  const char *box_dir, *state_dir, *node;
  const char *listen, *token_file, *tls_cert, *tls_key;
  bool open; /* listens beyond loopback without token or TLS */
  bool foreground, nvidia_names;
  /* nothing is written beside logs, hangs are not judged: of `top`, no option */
  bool watch_only;
  uint64_t every_ns; /* samples of NICs, GPUs and the host */
  uint64_t keep_ended_ns, stuck_ns, otlp_every_ns;
  uint64_t ring_bytes;
  const char *otlp, *otlp_header, *otlp_header_file; /* otlp_header: "NAME: VALUE" */
  /* head_ca: "system": those of the system; NULL: no TLS */
  const char *head, *head_token_file, *head_ca;
  const char *head_cert, *head_key;
  struct ni_argv on_hang;
  const char *ras; /* HOST:PORT, "" for localhost; NULL: RAS is not asked */
  uint64_t ras_every_ns;
  const char *stacks; /* "py-spy", "gdb"; NULL: none */
};

struct ni_top_options {
  struct ni_inputs log_dirs, agents; /* agents: HOST:PORT, or https://...; none: this node */
  const char *prometheus, *box_dir, *token_file, *ca;
  uint64_t every_ns;
  bool once, json, no_colour;
  const char *sort, *filter;
};

/* The process becomes the program beside it, as command `name`, with what follows argv[0]. Returns only where
 * that failed: the exit code, after a message. */
int ni_live_become(const char *name, int argc, char **argv);

extern const struct ni_command ni_agent_command, ni_top_command;
/* As ni_words_parse(), into o; what it took is given back by ..._free(). */
int ni_agent_options_parse(struct ni_agent_options *o, int argc, char **argv, int *done);
void ni_agent_options_free(struct ni_agent_options *o);
int ni_top_options_parse(struct ni_top_options *o, int argc, char **argv, int *done);
void ni_top_options_free(struct ni_top_options *o);

#endif

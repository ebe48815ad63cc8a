/*
 * The words of `head` and of `session ...`. They belong to nccl-inspector-live as those of live.h do:
 * nccl-inspector becomes it. What gsprof understands has words of its own (exporter/head/cli/gsprof.h). Main
 * thread.
 */
#ifndef NI_CMDS_HEAD_H
#define NI_CMDS_HEAD_H

#include "exporter/cli/command.h"

#define NI_HEAD_HTTP "127.0.0.1:8091"
enum { NI_HEAD_PORT = 8090, NI_HEAD_HTTP_PORT = 8091 };

/* Of `head`, and of `gsprof start`, which sets gsprof. */
struct ni_head_options {
  const char *host; /* address to listen at, for both ports: 127.0.0.1 */
  /* 8090, 8091; http_port 0: no HTTP (`--http-port 0`). port 0: no gRPC where it was not built in */
  uint64_t port, http_port;
  uint64_t freq_ms; /* 500; 100 to 60,000 */
  bool bandwidth, nvlink, background, gsprof;
  const char *data_dir, *out_dir; /* NULL: as store.h says */
  /* client_ca: clients need a certificate that it signed */
  const char *token_file, *tls_cert, *tls_key, *client_ca;
  bool open, insecure_gsprof;
  struct ni_inputs origins; /* --cors ORIGIN, repeatable */
};
/* The rows that `head` shares with `gsprof start`; they go into a struct ni_head_options. */
#define NI_HEAD_INTO(member) NI_INTO(struct ni_head_options, member)
#define NI_ROWS_HEAD(host_name, http) \
  {"host", \
   0, \
   NI_OPT_TEXT, \
   "ADDRESS", \
   "Where to listen, for both ports; beyond this machine it wants a token and TLS, or --open", \
   NI_HEAD_INTO(host), \
   .def = host_name, \
   .min = 1}, \
      {"port", \
       0, \
       NI_OPT_NUMBER, \
       "PORT", \
       "gRPC: agents, gsprof's clients", \
       NI_HEAD_INTO(port), \
       .def = "8090", \
       .max = 65535}, \
      {"http-port", \
       0, \
       NI_OPT_NUMBER, \
       "PORT", \
       "HTTP: sessions, page; 0: none", \
       NI_HEAD_INTO(http_port), \
       .def = http, \
       .max = 65535}, \
      {"freq", \
       0, \
       NI_OPT_NUMBER, \
       "MS", \
       "A frame each so many milliseconds", \
       NI_HEAD_INTO(freq_ms), \
       .def = "500", \
       .min = 100, \
       .max = 60000}, \
      {"enable-bandwidth",     0, NI_OPT_FLAG, NULL, "Frames have PCIe and NVLink rates", \
       NI_HEAD_INTO(bandwidth)}, \
      {"enable-nvlink", 0, NI_OPT_FLAG, NULL, "Frames have NVLink rates", NI_HEAD_INTO(nvlink)}, \
      {"background", 0, NI_OPT_FLAG, NULL, "Go to the background once it serves", NI_HEAD_INTO(background)}, \
      {"token-file", \
       0, \
       NI_OPT_TEXT, \
       "FILE", \
       "Serve only who sends the first line of FILE as a bearer token", \
       NI_HEAD_INTO(token_file), \
       .min = 1}, \
      {"tls-cert", 0, NI_OPT_TEXT, "FILE", "Certificate (PEM): serve by TLS", NI_HEAD_INTO(tls_cert), \
       .min = 1}, \
      {"tls-key", 0, NI_OPT_TEXT, "FILE", "Its private key (PEM)", NI_HEAD_INTO(tls_key), .min = 1}, \
      {"open", \
       0, \
       NI_OPT_FLAG, \
       NULL, \
       "Listen beyond this machine also without a token and TLS", \
       NI_HEAD_INTO(open)}, \
  { \
    "insecure-gsprof", 0, NI_OPT_FLAG, NULL, \
        "Take numbers from gsprof's clients without a token; they start and stop nothing", \
        NI_HEAD_INTO(insecure_gsprof) \
  }

/* Of all `session ...`; each has some of it. Texts are argv's. */
struct ni_session_options {
  const char *head, *token_file, *ca; /* head: HOST:PORT of its HTTP, or a URL */
  const char *cert, *key;             /* PEM files of who asks; together */
  const char *name, *id, *file;       /* NULL: not given; file: of --out, --export */
  const char *data_dir, *prometheus, *plot;
  struct ni_when since, until; /* of a Prometheus: absolute, or before now */
  uint64_t every_ns;
  bool all, list, resume, json;
  struct ni_inputs files;
};
/* How a head is asked; OF(member) names a member of struct ni_session_options. */
/* clang-format off */
#define NI_ROWS_TRUST(OF) \
  {"token-file", 0, NI_OPT_TEXT, "FILE", "Its first line is sent as a bearer token", OF(token_file), \
   .min = 1}, \
  {"ca", 0, NI_OPT_TEXT, "FILE", "Ask by TLS; certificates (PEM) that are trusted", OF(ca), .min = 1}, \
  {"cert", 0, NI_OPT_TEXT, "FILE", "Certificate (PEM) of who asks, for a head that asks for one", \
   OF(cert), .min = 1}, \
  {"key", 0, NI_OPT_TEXT, "FILE", "Its private key (PEM)", OF(key), .min = 1}
/* clang-format on */

enum ni_session_word {
  NI_SESSION_START,
  NI_SESSION_STOP,
  NI_SESSION_RESUME,
  NI_SESSION_STATUS,
  NI_SESSION_LIST,
  NI_SESSION_RECOVER,
  NI_SESSION_EXPORT,
  NI_SESSION_STAT,
  NI_SESSION_WORDS
};
extern const struct ni_command *const ni_session_commands[NI_SESSION_WORDS];

/* As ni_words_parse(), into o; what it took is given back by ..._free(). */
int ni_head_options_parse(struct ni_head_options *o, int argc, char **argv, int *done);
/* What is wrong with options of the head together; NULL: nothing. */
const char *ni_head_refuse(void *options);
void ni_head_options_free(struct ni_head_options *o);
int ni_session_options_parse(enum ni_session_word which, struct ni_session_options *o, int argc, char **argv,
                             int *done);
void ni_session_options_free(struct ni_session_options *o);

#endif

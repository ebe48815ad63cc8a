/*
 * What the subcommands' command lines have in common: long options with '_' and '-' alike, inputs, exit code 64.
 *
 * Which of them are logs, and what is said when none is, too.
 *
 * Options are glibc argp's; ni_options_parse() rewrites NVIDIA's spelling (--input_dir) to ours (--input-dir) in argv
 * and then lets argp do the rest. Messages go to stderr, help to stdout. Main thread only. The input list is owned by
 * the caller: ni_inputs_free().
 */
#ifndef NI_OPTIONS_H
#define NI_OPTIONS_H

#include <argp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "exporter/input/discover.h"
#include "exporter/base/text/safe_text.h"

struct ni_inputs {
  char **path;
  size_t n, cap;
};

/* Keys of options that several commands have; commands number their own from NI_OPT_OWN. */
enum { NI_OPT_INPUT_DIR = 0x100, NI_OPT_JSON, NI_OPT_OWN = 0x200 };

/* 0 or -ENOMEM. The path is copied. */
int ni_inputs_add(struct ni_inputs *in, const char *path);
void ni_inputs_free(struct ni_inputs *in);

/*
 * Parses argv along argp; for help and for wrong options argp ends the process itself (0, 64). Else *done says whether
 * the command has nothing more to do; the return value is then its exit code.
 */
int ni_options_parse(const struct argp *argp, int argc, char **argv, void *input, int *done);

/* What ni_words_add() or ni_ranks_add() made of a list: 0 and ENOMEM are argp's; wrong text ends the process with want. */
error_t ni_option_added(struct argp_state *state, const char *option, const char *arg, int e, const char *want);

/* The logs among the inputs. Where there are none, says of each input why, in who's name. 0, -ENOENT, -ENOMEM. */
int ni_inputs_find(const struct ni_inputs *in, const char *who, struct ni_files *out);
/* The paths that cannot be read, on stderr. */
void ni_inputs_unreadable(const char *who, const struct ni_files *files);

/* "name=count" into *name (to be freed) and *count. 0, -EINVAL, -ENOMEM. */
int ni_parse_expect(const char *text, char **name, uint64_t *count);

#endif

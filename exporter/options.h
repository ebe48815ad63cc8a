/*
 * What the subcommands' command lines have in common: long options with '_' and '-' alike, inputs, exit code 64.
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

struct ni_inputs {
  char **path;
  size_t n;
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

/* "name=count" into *name (to be freed) and *count. 0, -EINVAL, -ENOMEM. */
int ni_parse_expect(const char *text, char **name, uint64_t *count);

#endif

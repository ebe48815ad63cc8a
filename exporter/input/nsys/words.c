#include "words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "exporter/input/kineto/words.h"

static bool has_prefix(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

enum ni_nsys_range ni_nsys_range_of(const char *text, enum ni_func *func) {
  *func = NI_FUNC_OTHER;
  if (!has_prefix(text, "nccl"))
    return NI_NSYS_OTHER;
  const char *word = text + 4;
  if (*word == ':') {
    *func = ni_kineto_collective(word + 1);
    return NI_NSYS_TORCH;
  }
  if (strcmp(word, "GroupStart") == 0)
    return NI_NSYS_GROUP_BEGIN;
  if (has_prefix(word, "GroupEnd") || strcmp(word, "GroupSimulateEnd") == 0)
    return NI_NSYS_GROUP_END;
  static const char *const makers[] = {"CommInit", "CommSplit", "CommShrink", "CommGrow"};
  for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
    if (has_prefix(word, makers[i]))
      return NI_NSYS_COMM;
  if (strcmp(word, "AllToAll") == 0)
    word = "AlltoAll";
  else if (strcmp(word, "Bcast") == 0)
    word = "Broadcast";
  *func = ni_func_from_name(word);
  return *func == NI_FUNC_OTHER ? NI_NSYS_OTHER : NI_NSYS_CALL;
}

/* ---- steps --------------------------------------------------------------------------------------------- */

static bool is_step_word(const char *text, size_t n) {
  static const char *const words[] = {"step", "iteration", "iter", "batch", "profilerstep"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    const size_t length = strlen(words[i]);
    if (n < length || strncasecmp(text + n - length, words[i], length) != 0)
      continue;
    /* "train_step", "global step", "Step", no "footstep" */
    if (n == length || !isalpha((unsigned char)text[n - length - 1]))
      return true;
  }
  return false;
}

bool ni_nsys_step(const char *text, uint32_t *number, size_t *before) {
  const size_t n = strnlen(text, 65);
  size_t from = n;
  if (n == 65)
    return false;
  while (from > 0 && isdigit((unsigned char)text[from - 1]))
    from--;
  if (from == n || n - from > 9)
    return false;
  size_t word = from;
  while (word > 0 && strchr(" #_:=-", text[word - 1]))
    word--;
  if (!is_step_word(text, word))
    return false;
  *number = (uint32_t)strtoul(text + from, NULL, 10);
  *before = from;
  return true;
}

/* ---- ranks --------------------------------------------------------------------------------------------- */

/* The value of a variable, a whole number; -1: none. */
static int32_t read_variable(const char *environment, const char *name) {
  const size_t n = strlen(name);
  for (const char *at = environment; (at = strstr(at, name)); at += n) {
    const bool begins_there = at == environment || (!isalnum((unsigned char)at[-1]) && at[-1] != '_');
    const char *value = at + n;
    value += *value == '"';
    if (!begins_there || (*value != '=' && *value != ':'))
      continue;
    value += 1 + strspn(value + 1, " \"");
    char *end;
    const unsigned long number = isdigit((unsigned char)*value) ? strtoul(value, &end, 10) : INT32_MAX;
    if (number < INT32_MAX && !isalnum((unsigned char)*end) && *end != '.')
      return (int32_t)number;
  }
  return -1;
}

int32_t ni_nsys_rank_in(const char *environment, int32_t *world, const char **name) {
  static const char *const known[][2] = {{"RANK", "WORLD_SIZE"},
                                         {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                         {"PMI_RANK", "PMI_SIZE"},
                                         {"PMIX_RANK", "PMIX_SIZE"},
                                         {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
                                         {"SLURM_PROCID", "SLURM_NTASKS"}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    const int32_t rank = read_variable(environment, known[i][0]);
    if (rank < 0)
      continue;
    *world = read_variable(environment, known[i][1]);
    if (*world <= rank)
      *world = -1;
    *name = known[i][0];
    return rank;
  }
  *name = NULL;
  return *world = -1;
}

/* The completion of a program's command line, as a script for bash; zsh takes it with bashcompinit. */
#include <string.h>

#include "words.h"

static void option_words(FILE *f, const struct ni_opt *o) {
  for (; o->kind; o++)
    if (o->name && o->help) ni_say(f, " --%s", o->name);
}

static void options(FILE *f, const struct ni_command *c) {
  ni_say(f, "    %s) words='", c->name);
  option_words(f, c->opt);
  option_words(f, ni_words_common);
  ni_say(f, "' ;;\n");
}

/* Behind an option that takes one of a few words: these. */
static void choices(FILE *f, const struct ni_command *c) {
  for (const struct ni_opt *o = c->opt; o->kind; o++) {
    if (!o->name || o->kind != NI_OPT_CHOICE) continue;
    ni_say(f, "    '%s --%s') value=1 words='", c->name, o->name);
    for (const char *w = o->want; *w; w += strcspn(w, "|"), w += *w == '|') ni_say(f, " %.*s", (int)strcspn(w, "|"), w);
    ni_say(f, "' ;;\n");
  }
}

void ni_words_bash(FILE *f, const char *program, const struct ni_command *const *command, size_t n, const struct ni_command *only) {
  char function[64];
  snprintf(function, sizeof function, "_%s", program);
  for (char *s = function; *s; s++)
    if (*s == '-') *s = '_';
  ni_say(f, "# Completion of %s for bash, made from its tables of options. For zsh, before this file is sourced:\n"
            "#   autoload -U +X bashcompinit && bashcompinit\n"
            "%s() {\n"
            "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words= value=\n"
            "  if [ \"$cur\" = = ]; then cur=; elif [ \"$prev\" = = ]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi\n",
         program, function);
  if (only) ni_say(f, "  local command=%s\n", only->name);
  else
    ni_say(f, "  local command=${COMP_WORDS[1]}\n"
              "  case $command in -*) command=summary ;; esac\n");
  ni_say(f, "  case \"$command $prev\" in\n");
  if (only) choices(f, only);
  for (size_t i = 0; i < n; i++) choices(f, command[i]);
  ni_say(f, "  esac\n");
  if (n) {
    ni_say(f, "  if [ $COMP_CWORD = 1 ] || [ \"$COMP_CWORD$command\" = 2help ]; then\n    value=1 words='");
    for (size_t i = 0; i < n; i++) ni_say(f, " %s", command[i]->name);
    ni_say(f, " --help --version'\n  fi\n");
  }
  ni_say(f, "  [ -n \"$value\" ] || case $cur in -*) case $command in\n");
  if (only) options(f, only);
  for (size_t i = 0; i < n; i++) options(f, command[i]);
  ni_say(f, "  esac ;; esac\n"
            "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
            "}\n"
            "complete -o default -F %s %s\n", function, program);
}

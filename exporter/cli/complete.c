/* The completion of a command's table for bash, zsh and fish. */
#include "complete.h"

#include <string.h>

#include "page.h"

static void list_options(FILE *f, const struct ni_opt *o) {
  for (; o->kind; o++)
    if (o->name && o->help)
      ni_say(f, " --%s", o->name);
}

/* The first of those whose names have two words, and begin with the same one? */
static bool is_first_of_group(const struct ni_command *const *command, size_t i) {
  size_t n = strcspn(command[i]->name, " ") + 1;
  if (!strchr(command[i]->name, ' '))
    return false;
  for (size_t k = 0; k < i; k++)
    if (strncmp(command[k]->name, command[i]->name, n) == 0)
      return false;
  return true;
}

static void write_bash_case(FILE *f, const struct ni_command *c) {
  ni_say(f, "    '%s') words='", c->name);
  list_options(f, c->opt);
  list_options(f, ni_words_common);
  ni_say(f, "' ;;\n");
}

/* Offers the words of an option that takes one of a few. */
static void write_bash_choices(FILE *f, const struct ni_command *c) {
  for (const struct ni_opt *o = c->opt; o->kind; o++) {
    if (!o->name || o->kind != NI_OPT_CHOICE)
      continue;
    ni_say(f, "    '%s --%s') value=1 words='", c->name, o->name);
    for (const char *w = o->want; *w; w += strcspn(w, "|"), w += *w == '|')
      ni_say(f, " %.*s", (int)strcspn(w, "|"), w);
    ni_say(f, "' ;;\n");
  }
}

/* " doctor|hang|...": all whose names are one word, as a pattern. */
static void write_one_word_commands(FILE *f, const struct ni_command *const *command, size_t n) {
  bool has_written = false;
  for (size_t i = 0; i < n; i++) {
    if (strchr(command[i]->name, ' '))
      continue;
    ni_say(f, "%s%s", has_written ? "|" : " ", command[i]->name);
    has_written = true;
  }
}

static void write_bash(FILE *f, const char *program, const char *function,
                       const struct ni_command *const *command, size_t n, const struct ni_command *only) {
  ni_say(f,
         "# Completion of %s for bash, made from its tables of options.\n"
         "%s() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words= value=\n"
         "  if [ \"$cur\" = = ]; then cur=; elif [ \"$prev\" = = ]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; "
         "fi\n",
         program, function);
  if (only)
    ni_say(f, "  local command=%s\n", only->name);
  else
    ni_say(f,
           "  local command=${COMP_WORDS[1]}\n"
           "  case $command in -*) command=summary ;;");
  for (size_t i = 0; i < n; i++) /* of two words: the second may still be in the making */
    if (is_first_of_group(command, i))
      ni_say(f, " %.*s) [ $COMP_CWORD -lt 3 ] || command+=\" ${COMP_WORDS[2]}\" ;;",
             (int)strcspn(command[i]->name, " "), command[i]->name);
  if (!only) {
    write_one_word_commands(f, command, n);
    /* a folder of logs stands for it */
    ni_say(f, ") ;; *) [ ! -d \"$command\" ] || command=summary ;; esac\n");
  }
  ni_say(f, "  case \"$command $prev\" in\n");
  if (only)
    write_bash_choices(f, only);
  for (size_t i = 0; i < n; i++)
    write_bash_choices(f, command[i]);
  ni_say(f, "  esac\n");
  if (n) {
    ni_say(f,
           "  local at=$COMP_CWORD\n"
           "  [ \"${COMP_WORDS[1]}\" != help ] || at=$((at - 1))\n"
           "  if [ $at = 1 ]; then\n    value=1 words='");
    for (size_t i = 0; i < n; i++)
      if (!strchr(command[i]->name, ' ') || is_first_of_group(command, i))
        ni_say(f, " %.*s", (int)strcspn(command[i]->name, " "), command[i]->name);
    ni_say(f, " --help --version'\n  elif [ $at = 2 ]; then\n    case ${COMP_WORDS[COMP_CWORD - 1]} in");
    for (size_t i = 0; i < n; i++) {
      if (!is_first_of_group(command, i))
        continue;
      int group = (int)strcspn(command[i]->name, " ");
      ni_say(f, " %.*s) value=1 words='", group, command[i]->name);
      for (size_t k = i; k < n; k++)
        if (strncmp(command[k]->name, command[i]->name, (size_t)group + 1) == 0)
          ni_say(f, " %s", command[k]->name + group + 1);
      ni_say(f, "' ;;");
    }
    ni_say(f, " esac\n  fi\n");
  }
  ni_say(f, "  [ -n \"$value\" ] || case $cur in -*) case $command in\n");
  if (only)
    write_bash_case(f, only);
  for (size_t i = 0; i < n; i++)
    write_bash_case(f, command[i]);
  ni_say(f,
         "  esac ;; esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "}\n"
         "complete -o default -F %s %s\n",
         function, program);
}

/*
 * In single quotes of a shell: the text, with a backslash before the characters of `special`; zsh leaves the
 * quotes for a quote.
 */
static void write_quoted(FILE *f, const char *text, const char *special, bool zsh) {
  for (; *text; text++) {
    if (*text == '\'' && zsh)
      ni_say(f, "'\\''");
    else
      ni_say(f, "%s%c", strchr(special, *text) ? "\\" : "", *text);
  }
}

/* ---- zsh ---- */

/* What may stand behind the option: one of its words, or a file. */
static void write_zsh_value(FILE *f, const struct ni_opt *o) {
  fputs(ni_opt_may_lack(o) ? "::" : ":", f);
  write_quoted(f, o->arg, ":\\", true);
  ni_say(f, ":");
  if (o->kind != NI_OPT_CHOICE) {
    ni_say(f, "_files");
    return;
  }
  ni_say(f, "(");
  for (const char *w = o->want; *w; w++)
    ni_say(f, "%c", *w == '|' ? ' ' : *w);
  ni_say(f, ")");
}

/* By its letter, or by its name. */
static void write_zsh_option(FILE *f, const struct ni_opt *o, bool letter) {
  if (letter)
    ni_say(f, " \\\n        '-%c%s[", o->letter, o->arg ? "+" : "");
  else
    ni_say(f, " \\\n        '--%s%s[", o->name, !o->arg ? "" : ni_opt_may_lack(o) ? "=-" : "=");
  write_quoted(f, o->help, "[]\\", true);
  ni_say(f, "]");
  if (o->arg)
    write_zsh_value(f, o);
  ni_say(f, "'");
}

static void write_zsh_options(FILE *f, const struct ni_opt *o) {
  for (; o->kind; o++) {
    if (!o->name || !o->help)
      continue;
    write_zsh_option(f, o, false);
    if (o->letter)
      write_zsh_option(f, o, true);
  }
}

static void write_zsh_command(FILE *f, const struct ni_command *c) {
  ni_say(f, "    '%s')\n      _arguments", c->name);
  write_zsh_options(f, c->opt);
  write_zsh_options(f, ni_words_common);
  ni_say(f, " \\\n        '*:file:_files' ;;\n");
}

/* A word and its meaning for _describe. */
static void write_zsh_word(FILE *f, const char *word, int n, const char *meaning) {
  ni_say(f, "\n      '%.*s:", n, word);
  write_quoted(f, meaning, "\\", true);
  ni_say(f, "'");
}

static const char many[] = "several commands: press the key again";

static void write_zsh(FILE *f, const char *program, const char *function,
                      const struct ni_command *const *command, size_t n, const struct ni_command *only) {
  ni_say(
      f,
      "#compdef %s\n# Completion of %s for zsh, made from its tables of options.\n%s() {\n  local -a list\n",
      program, program, function);
  if (only)
    ni_say(f, "  local command=%s\n", only->name);
  else {
    ni_say(f,
           "  if (( CURRENT > 2 )) && [[ $words[2] = help ]]; then shift words; (( CURRENT-- )); fi\n"
           "  if (( CURRENT == 2 )); then\n    list=(");
    for (size_t i = 0; i < n; i++) {
      bool group = is_first_of_group(command, i);
      if (!strchr(command[i]->name, ' ') || group)
        write_zsh_word(f, command[i]->name, (int)strcspn(command[i]->name, " "),
                       group ? many : command[i]->purpose);
    }
    ni_say(f,
           ")\n    _describe command list || _files -/\n    return\n  fi\n"
           "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n");
    for (size_t i = 0; i < n; i++) {
      int group = (int)strcspn(command[i]->name, " ");
      if (!is_first_of_group(command, i))
        continue;
      ni_say(f,
             "    %.*s)\n      if (( CURRENT > 2 )); then command+=\" $words[2]\"; shift words; (( CURRENT-- "
             ")); else\n      list=(",
             group, command[i]->name);
      for (size_t k = i; k < n; k++)
        if (strncmp(command[k]->name, command[i]->name, (size_t)group + 1) == 0)
          write_zsh_word(f, command[k]->name + group + 1, (int)strlen(command[k]->name + group + 1),
                         command[k]->purpose);
      ni_say(f, ")\n      _describe command list\n      return; fi ;;\n");
    }
    ni_say(f, "    -*) command=summary ;;\n   ");
    write_one_word_commands(f, command, n);
    ni_say(f, ") ;;\n    *) [[ ! -d $command ]] || command=summary ;;\n  esac\n");
  }
  ni_say(f, "  case $command in\n");
  if (only)
    write_zsh_command(f, only);
  for (size_t i = 0; i < n; i++)
    write_zsh_command(f, command[i]);
  ni_say(f, "  esac\n}\n%s \"$@\"\n", function);
}

/* ---- fish ---- */

/* "complete -c PROGRAM -n 'CONDITION'": the words of a command's name have been typed. */
static void begin_fish_line(FILE *f, const char *program, const char *name, int n) {
  ni_say(f, "complete -c %s", program);
  if (!name)
    return;
  ni_say(f, " -n '");
  for (int at = 0; at < n;) {
    int word = (int)strcspn(name + at, " ");
    ni_say(f, "%s__fish_seen_subcommand_from %.*s", at ? "; and " : "", word, name + at);
    at += word + 1;
  }
  ni_say(f, "'");
}

static void write_fish_meaning(FILE *f, const char *text) {
  ni_say(f, " -d '");
  write_quoted(f, text, "'\\", false);
  ni_say(f, "'\n");
}

static void write_fish_options(FILE *f, const char *program, const char *name, const struct ni_opt *o) {
  for (; o->kind; o++) {
    if (!o->name || !o->help)
      continue;
    begin_fish_line(f, program, name, name ? (int)strlen(name) : 0);
    if (o->letter)
      ni_say(f, " -s %c", o->letter);
    ni_say(f, " -l %s", o->name);
    if (o->arg && !ni_opt_may_lack(o))
      ni_say(f, " -r");
    if (o->arg && o->kind == NI_OPT_CHOICE) {
      ni_say(f, " -f -a '");
      for (const char *w = o->want; *w; w++)
        ni_say(f, "%c", *w == '|' ? ' ' : *w);
      ni_say(f, "'");
    }
    write_fish_meaning(f, o->help);
  }
}

static void write_fish(FILE *f, const char *program, const struct ni_command *const *command, size_t n,
                       const struct ni_command *only) {
  ni_say(f, "# Completion of %s for fish, made from its tables of options.\n", program);
  if (only)
    write_fish_options(f, program, NULL, only->opt);
  for (size_t i = 0; i < n; i++) {
    const char *name = command[i]->name;
    int first = (int)strcspn(name, " ");
    bool group = is_first_of_group(command, i);
    if (!name[first] || group) {
      ni_say(f, "complete -c %s -n '__fish_use_subcommand' -f -a %.*s", program, first, name);
      write_fish_meaning(f, group ? many : command[i]->purpose);
      ni_say(f, "complete -c %s -n '__fish_seen_subcommand_from help' -f -a %.*s\n", program, first, name);
    }
    if (name[first]) {
      begin_fish_line(f, program, name, first);
      ni_say(f, " -f -a %s", name + first + 1);
      write_fish_meaning(f, command[i]->purpose);
    }
    write_fish_options(f, program, name, command[i]->opt);
  }
  if (n)
    ni_say(f,
           "complete -c %s -n '__fish_use_subcommand' -f -a '(__fish_complete_directories)' -d 'a folder of "
           "logs: summary'\n",
           program);
  write_fish_options(f, program, NULL, ni_words_common);
}

void ni_words_complete(FILE *f, const char *shell, const char *program,
                       const struct ni_command *const *command, size_t n, const struct ni_command *only) {
  char function[64];
  snprintf(function, sizeof function, "_%s", program);
  for (char *s = function; *s; s++)
    if (*s == '-')
      *s = '_';
  if (strcmp(shell, "zsh") == 0)
    write_zsh(f, program, function, command, n, only);
  else if (strcmp(shell, "fish") == 0)
    write_fish(f, program, command, n, only);
  else
    write_bash(f, program, function, command, n, only);
}

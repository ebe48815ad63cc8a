/*
 * Prints nccl-inspector-plugin.7 from the plugin's table of settings (plugin/settings/config.c), as
 * docs/settings.md has it.
 */
#include <stdio.h>

#include "exporter/cli/page.h"
#include "plugin/settings/config.h"

static void settings(struct ni_help_page *p) {
  struct ni_setting_doc d;
  for (int effect = 1; effect >= 0; effect--) {
    ni_help_head(p, effect ? "Environment" : "Accepted, no effect", 0);
    for (size_t i = 0; ni_config_doc(i, &d); i++) {
      char word[128], meaning[512];
      if (effect != (d.accepted == NULL))
        continue;
      snprintf(word, sizeof word, "%s%s%s", d.name, d.fallback ? ", else " : "",
               d.fallback ? d.fallback : "");
      snprintf(meaning, sizeof meaning, "%s%s%s (%s; default %s)", d.help, effect ? "" : " ",
               effect ? "" : d.accepted, d.range, d.value);
      ni_help_pair(p, word, meaning);
    }
  }
}

static const struct ni_command plugin = {.name = "nccl-inspector-plugin",
                                         .purpose = "settings of the NCCL Inspector profiler plugin",
                                         .about =
                                             "NCCL loads the plugin where NCCL_PROFILER_PLUGIN names "
                                             "libnccl-profiler-inspector.so. Its settings are environment "
                                             "variables, read once, at the first communicator's init.\n"
                                             "A value that is not accepted is reported in NCCL's log with "
                                             "what is accepted, and the default is used; so is a variable "
                                             "that begins with NCCL_INSPECTOR_ and is none of these. An "
                                             "empty value counts as not set. Sizes take k, m or g, powers "
                                             "of 1024.",
                                         .extra = settings};

int main(void) {
  ni_words_man(stdout, plugin.name, 7, &plugin);
  return fflush(stdout) != 0;
}

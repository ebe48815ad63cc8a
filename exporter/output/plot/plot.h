/*
 * The figures of a summary, drawn by gnuplot.
 *
 * options->jobs gnuplot processes draw them, each fed by a thread. A figure is a script with its data,
 * already aggregated in struct ni_summary, in summary_dir/gnuplot; no shell is asked. Names out of logs are
 * hostile text: they only reach gnuplot inside single-quoted strings, bytes below 0x20 removed, with enhanced
 * text off.
 *
 * The same summary gives the same bytes, whichever gnuplot draws a figure: its script stands alone, nothing
 * in a picture comes from the clock, and the date that cairo puts into a PDF is taken out again.
 *
 * Threads: one call at a time. Ownership: everything stays with the caller. Failure: a picture that cannot be
 * drawn never ends the summary; the cause is told once through options->say and returned.
 */
#ifndef NI_PLOT_H
#define NI_PLOT_H

#include "exporter/model/sums/model.h"
#include "render.h"

/* In the order of the words of --plot-format. */
enum ni_plot_format { NI_PLOT_PNG = 0, NI_PLOT_SVG, NI_PLOT_PDF, NI_PLOT_FORMAT_COUNT };

/*
 * Draws the figures into summary_dir, which exists; the folders below it (msg_size_*) are made as needed.
 * They are the reference's four kinds, under its names; without compat of all functions. With keep_scripts
 * the scripts stay. 0; -ENOENT: no gnuplot; -EIO: gnuplot failed for some or all (its first complaint is in
 * the message); -ETIMEDOUT: it hung and was killed; -ENOSPC: a picture ends in the middle; -ENOMEM, -errno of
 * mkdir, of a script that cannot be written, of spawn. Never raises SIGPIPE in the caller.
 */
int ni_plots_render(const struct ni_summary *summary, const struct ni_render_options *options,
                    const char *summary_dir);

#endif

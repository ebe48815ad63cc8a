/* Cells; figures over sizes and over the time of the run. As figure.h has it. */
#ifndef NI_FIGURE_CELLS_H
#define NI_FIGURE_CELLS_H

#include "figure.h"

void ni_fig_histogram(FILE *f, const struct ni_figure *fig);
void ni_fig_boxplot(FILE *f, const struct ni_figure *fig);

void ni_fig_by_size(FILE *f, const struct ni_figure *fig);     /* first: a group; its kind and function is meant */
void ni_fig_percentiles(FILE *f, const struct ni_figure *fig); /* first: a group; its type, kind and function */
void ni_fig_heat(FILE *f, const struct ni_figure *fig);

#endif

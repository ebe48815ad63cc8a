/* One cell each. As figure.h has it. */
#ifndef NI_FIGURE_CELLS_H
#define NI_FIGURE_CELLS_H

#include "figure.h"

void ni_fig_histogram(FILE *f, const struct ni_figure *fig);
void ni_fig_boxplot(FILE *f, const struct ni_figure *fig);

#endif

/* Operations as points. As figure.h has it. */
#ifndef NI_FIGURE_SCATTER_H
#define NI_FIGURE_SCATTER_H

#include "figure.h"

void ni_fig_scatter(FILE *f, const struct ni_figure *fig);
void ni_fig_combined(FILE *f, const struct ni_figure *fig);

#endif

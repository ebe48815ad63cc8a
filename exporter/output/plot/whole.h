/* Is a picture whole? gnuplot does not say that a disk was full: it leaves what there was room for. */
#ifndef NI_PLOT_WHOLE_H
#define NI_PLOT_WHOLE_H

#include <stdbool.h>

#include "plot.h"

/* Does the file end as its format ends? false also where it is not there. Any thread. */
bool ni_picture_is_whole(const char *path, enum ni_plot_format format);

#endif

#ifndef NI_DOCTOR_SETTINGS_ENV_H
#define NI_DOCTOR_SETTINGS_ENV_H

#include "findings.h"

/* Names that are nearly settings; settings that contradict each other. */
void ni_doctor_settings(struct ni_doctor *d);

#endif

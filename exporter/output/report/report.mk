# The assets of report.html, counters.html and the pages of diff and head: page, style, script and ECharts in pieces, a head
# each and one tail; the data go between them.
# Built in REPORT_DIR, one for all variants of a build, with npm and node; embedded by exporter/output/report/page_file.c. Without
# npm, or when the packages cannot be had, the pieces are empty: one line says so, everything else is built, and the summary
# goes without a page.
REPORT_DIR    ?= $(BUILD)/report
REPORT_SRC    := $(sort $(wildcard exporter/output/report/src/*)) exporter/output/report/bundle.mjs exporter/output/report/bundle.sh \
                 exporter/output/report/package.json exporter/output/report/package-lock.json
REPORT_ASSETS := $(REPORT_DIR)/report_assets.head $(REPORT_DIR)/counters_assets.head $(REPORT_DIR)/diff_assets.head \
                 $(REPORT_DIR)/head_assets.head $(REPORT_DIR)/report_assets.tail
# Empty pieces are from a build that could not: tried again as soon as npm is there.
REPORT_AGAIN  := $(if $(shell test -e $(REPORT_DIR)/report_assets.tail -a ! -s $(REPORT_DIR)/report_assets.tail && command -v npm),again)

.PHONY: again
$(REPORT_DIR)/report_assets.tail: $(REPORT_SRC) $(REPORT_AGAIN)
	$(call say,BUNDLE,$@)
	$(Q)exporter/output/report/bundle.sh $(REPORT_DIR)
$(REPORT_DIR)/report_assets.head $(REPORT_DIR)/counters_assets.head $(REPORT_DIR)/diff_assets.head $(REPORT_DIR)/head_assets.head: $(REPORT_DIR)/report_assets.tail ;

$(BUILD)/obj/exporter/output/report/page_file.o: EXP_FLAGS += -DNI_REPORT_DIR='"$(REPORT_DIR)"'
$(BUILD)/obj/exporter/output/report/page_file.o: $(REPORT_DIR)/report_assets.tail

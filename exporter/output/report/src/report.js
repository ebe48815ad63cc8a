// report.html: its parts, in their order, each with the section that it belongs to.
import { head, completeness, whereTimeWent } from './overview.js';
import { findings, runParts } from './findings.js';
import { stepsOverRun } from './steps.js';
import { bandwidthBySize } from './size.js';
import { rankByTime } from './heat.js';
import { outlierTable } from './outliers.js';
import { devicesBeside } from './devices.js';
import { oneGroup } from './group.js';
import { allTables } from './tables.js';

export const parts = [
  ['s-found', head],
  ['s-found', findings],
  ['s-complete', completeness],
  ['s-time', runParts],
  ['s-time', stepsOverRun],
  ['s-time', whereTimeWent],
  ['s-size', bandwidthBySize],
  ['s-heat', rankByTime],
  ['s-outliers', outlierTable],
  ['s-devices', devicesBeside],
  ['s-group', oneGroup],
  ['s-table', allTables],
];

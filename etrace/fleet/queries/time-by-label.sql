-- SPDX-License-Identifier: Apache-2.0
-- builds and their time by week and the value of a label
-- LABEL: name of the label: team
SELECT CAST(DATE_TRUNC('week', time) AS DATE) AS week, labels[:label] AS value, COUNT(*) AS builds,
       ROUND(SUM(elapsed_ns) / 1e9, 1) AS seconds, ROUND(SUM(cpu_ns) / 1e9, 1) AS cpu_seconds
FROM builds
GROUP BY CAST(DATE_TRUNC('week', time) AS DATE), labels[:label]
ORDER BY week, value

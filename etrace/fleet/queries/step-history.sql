-- SPDX-License-Identifier: Apache-2.0
-- time of a step by commit, in order of time
-- STEP: name of the step: cc1 lvm.c
SELECT b.project, b.labels['commit'] AS commit, MIN(b.time) AS first, e.cwd,
       COUNT(DISTINCT e.build) AS builds, ROUND(AVG(e.elapsed_ns) / 1e9, 4) AS mean_s,
       ROUND(MIN(e.elapsed_ns) / 1e9, 4) AS least_s, ROUND(MAX(e.elapsed_ns) / 1e9, 4) AS most_s
FROM executions e
JOIN builds b ON b.build = e.build
WHERE e.step = :step
GROUP BY b.project, b.labels['commit'], e.cwd
ORDER BY b.project, first, e.cwd

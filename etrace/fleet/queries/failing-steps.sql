-- SPDX-License-Identifier: Apache-2.0
-- steps that fail in some builds and not in others
SELECT b.project, e.cwd, e.step, COUNT(DISTINCT e.build) AS builds,
       COUNT(DISTINCT CASE WHEN e.status <> 0 THEN e.build END) AS failed,
       MAX(CASE WHEN e.status <> 0 THEN b.time END) AS last
FROM executions e
JOIN builds b ON b.build = e.build
GROUP BY b.project, e.cwd, e.step
HAVING COUNT(DISTINCT CASE WHEN e.status <> 0 THEN e.build END) > 0
   AND COUNT(DISTINCT CASE WHEN e.status <> 0 THEN e.build END) < COUNT(DISTINCT e.build)
ORDER BY failed DESC, b.project, e.cwd, e.step
LIMIT 50

-- SPDX-License-Identifier: Apache-2.0
-- commands of a build that took the longest
-- BUILD: id of the build
SELECT e.step, e.cwd, e.target, ROUND(e.elapsed_ns / 1e9, 3) AS seconds,
       ROUND((e.user_ns + e.system_ns) / 1e9, 3) AS cpu_seconds, e.status
FROM executions e
WHERE e.build = :build
  AND NOT EXISTS (SELECT 1 FROM executions k WHERE k.build = e.build AND k.parent = e.execution)
ORDER BY e.elapsed_ns DESC, e.execution
LIMIT 50

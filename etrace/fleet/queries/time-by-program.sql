-- SPDX-License-Identifier: Apache-2.0
-- programs by the CPU time of all builds; by elapsed time where no CPU time is known
SELECT program, COUNT(*) AS runs, COUNT(DISTINCT build) AS builds,
       ROUND(SUM(user_ns + system_ns) / 1e9, 1) AS cpu_seconds,
       ROUND(SUM(elapsed_ns) / 1e9, 1) AS seconds
FROM executions
GROUP BY program
ORDER BY COALESCE(SUM(user_ns + system_ns), 0) DESC, SUM(elapsed_ns) DESC, program
LIMIT 50

-- SPDX-License-Identifier: Apache-2.0
-- commands of a build that ended with another status than 0
-- BUILD: id of the build
SELECT e.step, e.cwd, e.target, e.status, e.command
FROM executions e
WHERE e.build = :build AND e.status <> 0
ORDER BY e.execution
LIMIT 50

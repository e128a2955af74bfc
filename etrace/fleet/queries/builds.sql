-- SPDX-License-Identifier: Apache-2.0
-- builds of the fleet, the newest first
SELECT project, build, time, labels, ROUND(elapsed_ns / 1e9, 3) AS seconds,
       ROUND(cpu_ns / 1e9, 3) AS cpu_seconds, commands, failed, opens
FROM builds
ORDER BY time DESC, project, build

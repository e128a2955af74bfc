-- SPDX-License-Identifier: Apache-2.0
-- builds that read a file with a known content, and the modules that it went into
-- HASH: SHA-256 or git blob id of the content
SELECT b.project, b.build, b.time, f.path, f.package, c.module
FROM files f
JOIN builds b ON b.build = f.build
LEFT JOIN closures c ON c.build = f.build AND c.path = f.path
WHERE f.sha256 = LOWER(:hash) OR f.git_blob = LOWER(:hash)
ORDER BY b.project, b.time, b.build, f.path, c.module

-- SPDX-License-Identifier: Apache-2.0
-- names of files, with how many builds and contents
-- PATTERN: path with % for any characters: %/lvm.h
SELECT path, COUNT(*) AS builds, COUNT(DISTINCT sha256) AS contents
FROM files
WHERE path LIKE :pattern
GROUP BY path
ORDER BY builds DESC, path
LIMIT 200

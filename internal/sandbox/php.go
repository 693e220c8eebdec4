package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// phpFolder is searched by PHP after its own folders of settings (PHP_INI_SCAN_DIR), below HOME.
const phpFolder = ".config/php"

// phpSettings lead PHP to what it may write. Distributions put sessions below /var/lib, and the lock of the code cache, without which a
// server does not start, is in /tmp: neither follows TMPDIR by itself. PHP replaces the variable when it reads this.
const phpSettings = `session.save_path = "${TMPDIR}"
opcache.lockfile_path = "${TMPDIR}"
`

// phpConfig writes the commands' settings of PHP into home when there are none.
func phpConfig(home string, owner Owner) error {
	if err := writePHPConfig(home, owner); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("writing the commands' PHP settings: %w", err)
	}
	return nil
}

// writePHPConfig does not follow a link out of home: commands of an earlier sandbox may have had it.
func writePHPConfig(home string, owner Owner) (err error) {
	root, err := os.OpenRoot(home)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // nothing was written through it
	c := &copyBudget{owner: owner}
	if err := c.folders(root, phpFolder); err != nil {
		return err
	}
	name := filepath.Join(phpFolder, "sandbox.ini")
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err = file.WriteString(phpSettings); err == nil {
		err = c.own(root, name)
	}
	return errors.Join(err, file.Close())
}

/* Types and functions of HDAPI (OpenHaptics 3.0 to 3.5) that the emulated library has.

   The types are those that the maker documents: a boolean of one byte, an error returned by value, and handles of the
   scheduler as wide as a pointer. */

#ifndef OPENHAPTICS_H
#define OPENHAPTICS_H

typedef unsigned int HDuint, HDerror, HDenum, HHD, HDCallbackCode, HDWaitCode;
typedef unsigned char HDboolean;
typedef unsigned short HDushort;
typedef unsigned long HDulong, HDSchedulerHandle;
typedef int HDint;
typedef float HDfloat;
typedef double HDdouble;
typedef const char *HDstring;
typedef HDCallbackCode (*HDSchedulerCallback)(void *);

typedef struct {
    HDerror errorCode;
    int internalErrorCode;
    HHD hHD;
} HDErrorInfo;

HHD hdInitDevice(HDstring name);
void hdDisableDevice(HHD device);
void hdMakeCurrentDevice(HHD device);
HHD hdGetCurrentDevice(void);
void hdBeginFrame(HHD device);
void hdEndFrame(HHD device);
HDErrorInfo hdGetError(void);
HDstring hdGetErrorString(HDerror code);

void hdEnable(HDenum capability);
void hdDisable(HDenum capability);
HDboolean hdIsEnabled(HDenum capability);

void hdGetDoublev(HDenum name, HDdouble *values);
void hdGetFloatv(HDenum name, HDfloat *values);
void hdGetIntegerv(HDenum name, HDint *values);
HDstring hdGetString(HDenum name);
void hdSetDoublev(HDenum name, const HDdouble *values);
void hdSetFloatv(HDenum name, const HDfloat *values);

HDenum hdCheckCalibration(void);
HDenum hdCheckCalibrationStyle(void);
void hdUpdateCalibration(HDenum style);

void hdStartScheduler(void);
void hdStopScheduler(void);
void hdSetSchedulerRate(HDulong rate);
void hdScheduleSynchronous(HDSchedulerCallback callback, void *data, HDushort priority);
HDSchedulerHandle hdScheduleAsynchronous(HDSchedulerCallback callback, void *data, HDushort priority);
void hdUnschedule(HDSchedulerHandle handle);
HDboolean hdWaitForCompletion(HDSchedulerHandle handle, HDWaitCode code);
HDdouble hdGetSchedulerTimeStamp(void);

HDboolean hdDeploymentLicense(const char *vendor, const char *application, const char *password);

#endif
